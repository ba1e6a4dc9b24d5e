"""What a user sees first: a dozen names at most, an import that costs nothing, and links that lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import infomax

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


def test_links_between_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"
