"""What a user sees first: a dozen names at most, an import that costs nothing, and documents whose code runs."""

from __future__ import annotations

import dataclasses
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import infomax
from infomax import Graph
from infomax.presets import PRESETS

ROOT = Path(__file__).parents[1]


def test_a_dozen_names_at_most_and_each_is_there():
    assert len(infomax.__all__) <= 12
    assert {"DGI", "Embeddings", "Graph", "InputError", "load_dataset", "read_graph"} <= set(infomax.__all__)
    assert set(dir(infomax)) == {*infomax.__all__, "__version__"}
    for name in infomax.__all__:
        assert getattr(infomax, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Dgi'"):
        _ = infomax.Dgi


@pytest.mark.parametrize(
    ("statement", "light"),
    [
        ("import infomax", {"torch", "numpy", "scipy", "sklearn"}),
        ("from infomax import read_graph", {"torch", "sklearn"}),
        ("from infomax import DGI", {"sklearn", "scipy.stats", "rich", "numba", "pyarrow", "pandas"}),
    ],
)
def test_import_waits_for_nothing(statement, light):
    script = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert not light & set(done.stdout.split())


def code(document: str) -> list[str]:
    """The Python in a document."""
    return re.findall(r"```python\n(.*?)```", (ROOT / document).read_text(encoding="utf-8"), re.DOTALL)


def test_code_in_the_readme_runs_on_two_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ids = ["vim", *(f"package{row}" for row in range(29))]
    nodes = [f"{name},{row % 2},{row % 3},{'editors' if row % 2 else 'libs'}" for row, name in enumerate(ids)]
    Path("nodes.csv").write_text("\n".join(["id,x,y,section", *nodes]))
    edges = [f"{ids[row]},{ids[(7 * row + 2) % 30]}" for row in range(30)]
    Path("edges.csv").write_text("\n".join(["source,target", *edges]))
    quick = dataclasses.replace(PRESETS["whole-graph"], epochs=5)  # the README's own words would train to the end
    monkeypatch.setitem(PRESETS, "whole-graph", quick)
    (snippet,) = code("README.md")
    names: dict[str, object] = {}
    exec(snippet, names)
    assert names["embeddings"].vectors.shape == (30, 512)
    assert names["embeddings"].ids.tolist() == ids
    assert {path.name for path in tmp_path.iterdir()} == {"nodes.csv", "edges.csv", "vectors.parquet", "run"}


def test_code_in_the_architecture_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    names: dict[str, object] = {"graph": Graph.from_arrays(rng.integers(40, size=(2, 90)), rng.random((40, 6)))}
    snippets = code("docs/architecture.md")
    assert len(snippets) == 4
    for snippet in snippets:
        exec(snippet, names)
    assert (tmp_path / "linear-run" / "model.safetensors").exists()


def test_links_between_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
