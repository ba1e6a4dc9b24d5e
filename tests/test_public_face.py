"""What a user sees first: a dozen names at most, an import that costs nothing, and links that lead somewhere."""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest
from scripts.public_face import FILE, python_lines, shell_lines

import infomax
from infomax.io.choices import Choices

ROOT = Path(__file__).parents[1]
INNER = {"choose", "choose_preset"}
"""Methods of DGI that the reference leaves out (mkdocs.yml)."""


def test_a_dozen_names_at_most_and_each_is_there():
    assert len(infomax.__all__) <= 12
    assert {"DGI", "Embeddings", "Graph", "InputError", "load_dataset", "read_graph"} <= set(
        infomax.__all__
    )
    assert set(dir(infomax)) == {*infomax.__all__, "__version__"}
    for name in infomax.__all__:
        assert getattr(infomax, name).__name__ == name
    with pytest.raises(AttributeError, match="no attribute 'Dgi'"):
        _ = infomax.Dgi


def test_nothing_that_is_frozen_has_gone():
    frozen = set(FILE.read_text(encoding="utf-8").splitlines())
    gone = frozen - python_lines() - shell_lines()
    assert not gone, f"python scripts/public_face.py --write, if you mean it: {sorted(gone)}"
    assert len(frozen) > 300


@pytest.mark.parametrize(
    ("statement", "light"),
    [
        ("import infomax", {"torch", "numpy", "scipy", "sklearn"}),
        ("from infomax import read_graph", {"torch", "sklearn"}),
        (
            "from infomax import DGI",
            {"sklearn", "scipy.stats", "rich", "numba", "pyarrow", "pandas"},
        ),
    ],
)
def test_import_waits_for_nothing(statement, light):
    script = f"import sys\n{statement}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert not light & set(done.stdout.split())


def test_files_that_documents_name_exist():
    named = 0
    for document in [ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]:
        for name in re.findall(
            r"`((?:[\w-]+/)+[\w-]+\.(?:py|c|md))`", document.read_text(encoding="utf-8")
        ):
            assert any(
                (ROOT / place / name).exists() for place in ("", "src", "src/infomax", "tests")
            ), (
                document.name,
                name,
            )
            named += 1
    assert named > 20


def test_the_reference_describes_what_is_there():
    names = re.findall(
        r"^::: ([\w.]+)$",
        (ROOT / "docs/reference/python.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    homes = {f"{getattr(infomax, name).__module__}.{name}" for name in infomax.__all__}
    assert homes <= set(names)
    for name in names:
        module, _, last = name.rpartition(".")
        assert getattr(import_module(module), last).__module__ == module


def test_the_reference_shows_what_a_class_inherits():
    # Else it lacks DGI.transform: that is defined in a base class.
    for name, options in re.findall(
        r"^::: ([\w.]+)\n((?:    .*\n)*)", (ROOT / "docs/reference/python.md").read_text(), re.M
    ):
        described = getattr(infomax, name.rpartition(".")[2], None)
        bases = getattr(described, "__mro__", ())[1:]
        if any(base.__module__.startswith("infomax.") for base in bases):
            assert "inherited_members: true" in options, name


def documented(docstring: str, section: str) -> list[str]:
    """The names that a section of a docstring describes."""
    text = re.search(
        rf"^{section}:\n((?:    .*\n?|\n)+)", inspect.cleandoc(docstring), re.MULTILINE
    )
    return re.findall(r"^    (\S.*?): ", text[1], re.MULTILINE) if text else []


def test_a_docstring_describes_each_argument_by_itself():
    # Of "source, target: columns" the reference would make one argument of that name, without a type, and required.
    described = 0
    for public in (getattr(infomax, name) for name in infomax.__all__):
        routines = inspect.getmembers(
            public, lambda one: inspect.isfunction(one) or inspect.ismethod(one)
        )
        members = [member for name, member in routines if name[0] != "_"]
        for function in [public, *members]:
            names = documented(function.__doc__ or "", "Args")
            taken = [name for name in inspect.signature(function).parameters if name != "self"]
            if names or (
                len(taken) > 1 and not inspect.isclass(function) and function.__name__ not in INNER
            ):
                assert sorted(names) == sorted(taken), function
                described += len(names)
        for name in documented(public.__doc__ or "", "Attributes"):
            assert name.isidentifier(), (public, name)
    assert described > 30
    assert documented(Choices.__doc__ or "", "Attributes") == list(Choices.__annotations__)


def test_the_table_of_folders_has_the_order_of_imports():
    (contract,) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"][
        "contracts"
    ]
    names = [
        {name.removeprefix("infomax.") for name in layer.split(" | ")}
        for layer in contract["layers"]
    ]
    layers = [layer - {"__main__"} for layer in names]
    table = (
        (ROOT / "docs/explanation/architecture.md")
        .read_text(encoding="utf-8")
        .partition("## The folders")[2]
    )
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    assert [set(re.findall(r"`(\w+)", row)) for row in rows] == layers
