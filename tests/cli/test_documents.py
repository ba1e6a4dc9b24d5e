"""The pages in README.md and docs/: their code runs, and their links lead somewhere.

Blocks marked python or sh run, in order, one session per document.

A block that takes long says so in its first line, "Not run by the tests", and is not run. Commands of infomax in such
blocks and in indented ones are still parsed: every option must exist. The commands in the README run as well, but for
those in LONG. A block that begins with "# Needs faiss" is left out where that module is not installed.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from shutil import copy

import pytest
from sample_shop import sqlite_file
from shell import infomax
from typer.main import get_command

from infomax.cli import app

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCED = re.compile(r"^```(python|sh)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
NEEDS = re.compile(r"# Needs (\w+)\n")
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
LINKING = [
    *DOCUMENTS,
    *sorted(ROOT.glob("C*.md")),
    *sorted((ROOT / "recipes").glob("*.md")),
    ROOT / "benchmarks/README.md",
]
LEFT_OUT = "Not run by the tests"
LONG = {"map", "analyse", "prepare"}
"""Commands of the README that take long, or need more than its two tables; they have tests of their own."""


def blocks(path: Path) -> list[tuple[str, str]]:
    """The language and the code of each block to run."""
    kept = []
    for language, code in FENCED.findall(path.read_text(encoding="utf-8")):
        needed_module = NEEDS.match(code)
        is_missing = needed_module is not None and find_spec(needed_module[1]) is None
        first_line = code.partition("\n")[0]
        if not is_missing and LEFT_OUT not in first_line:
            kept.append((language, code))
    return kept


def commands(code: str) -> list[list[str]]:
    """The words of each command of infomax, in lines that begin with it or with four blanks and it."""
    lines = re.findall(r"^(?:    )?infomax (.*)", code, re.MULTILINE)
    return [shlex.split(line, comments=True) for line in lines]


def prepare(monkeypatch, tmp_path: Path) -> None:
    """An empty folder to work in, with what the README takes for granted: the tables of today and of tomorrow."""
    monkeypatch.chdir(tmp_path)
    ids = ["vim", *(f"package{row}" for row in range(59))]
    nodes = [
        f"{name},{row % 2},{row % 3},{'editors' if row % 2 else 'libs'}"
        for row, name in enumerate(ids)
    ]
    edges = [f"{ids[row]},{ids[(7 * row + 2) % 60]}" for row in range(60)]
    for folder in (Path(), Path("graph")):
        folder.mkdir(exist_ok=True)
        (folder / "nodes.csv").write_text("\n".join(["id,x,y,section", *nodes]))
        (folder / "edges.csv").write_text("\n".join(["source,target", *edges]))
    tables = {
        "Artist": {"ArtistId": [1, 2, 3], "Name": ["Metallica", "Os Mutantes", "Motörhead"]},
        "Track": {
            "TrackId": list(range(30)),
            "ArtistId": [1 + row % 3 for row in range(30)],
            "Seconds": [*range(30)],
        },
    }
    sqlite_file(Path("chinook.sqlite"), tables=tables, keys={})
    Path("tomorrow").mkdir()
    Path("tomorrow/nodes.csv").write_text("id,x,y\nnano,1,0\n")
    Path("tomorrow/edges.csv").write_text("source,target\nnano,vim\n")


def run_in_shell(code: str) -> None:
    lines = [
        line for line in code.splitlines() if line.strip() and not line.strip().startswith("#")
    ]
    if all(
        line.startswith("infomax ") for line in lines
    ):  # in this process: torch is loaded already
        for words in commands(code):
            outcome = infomax(*words)
            assert outcome.code == 0, (words, outcome.err)
    else:
        subprocess.run(["bash", "-euc", code], check=True, stdout=subprocess.DEVNULL)


def runs_of(path: Path) -> object:
    """A page whose code runs, as a parameter: lessons take long, and one needs the files of Cora."""
    if path.parent.name != "lessons":
        return path
    marks = [pytest.mark.slow]
    if path.name == "paper.md":
        has_cora = (Path(os.environ.get("INFOMAX_DATA", "")) / "planetoid").is_dir()
        marks.append(pytest.mark.skipif(not has_cora, reason="needs Cora: set INFOMAX_DATA"))
    return pytest.param(path, marks=marks)


@pytest.mark.parametrize(
    "path",
    [runs_of(path) for path in DOCUMENTS if blocks(path)],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_the_code_of_a_document_runs(path, tmp_path, monkeypatch):
    if path.name == "README.md":
        prepare(monkeypatch, tmp_path)
    if path.name == "serving.md":
        # It says to copy the server to where one works, and nothing else of the repository is there.
        copy(ROOT / "recipes/serve.py", tmp_path)
        outside = [folder for folder in sys.path if Path(folder).resolve() != ROOT]
        monkeypatch.setattr(sys, "path", [str(tmp_path), *outside])
    monkeypatch.chdir(tmp_path)

    session: dict[str, object] = {"__name__": "__main__"}
    for language, code in blocks(path):
        if language == "python":
            exec(compile(code, str(path), "exec"), session)
        else:
            run_in_shell(code)


def test_the_commands_of_the_readme_run(tmp_path, monkeypatch):
    prepare(monkeypatch, tmp_path)
    shown = commands((ROOT / "README.md").read_text(encoding="utf-8"))
    assert {"train", "embed", "evaluate", "neighbours"} <= {words[0] for words in shown}
    for words in shown:
        if words[0] not in LONG:
            outcome = infomax(*words)
            assert outcome.code == 0, (words, outcome.err)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_the_commands_of_a_document_exist(path):
    text = path.read_text(encoding="utf-8")
    inline = [" ".join(command.split()) for command in re.findall(r"`(infomax\s[^`]+)`", text)]
    # Some show how commands are written, not a command.
    inline = [line for line in inline if not re.search(r"infomax -|COMMAND|DATASET", line)]
    indented = re.findall(r"^    infomax .*", text, re.MULTILINE)
    fenced = [code for _, code in FENCED.findall(text)]
    group = get_command(app)
    for words in commands("\n".join([*fenced, *indented, *inline])):
        command, arguments = command_of(group, words)
        assert command is not group, words
        context = group.make_context("infomax", [], resilient_parsing=True)
        known_options: set[str] = set()
        for parameter in command.get_params(context):
            known_options.update(parameter.opts, parameter.secondary_opts)
        options = {word.partition("=")[0] for word in arguments if re.match(r"--?[a-z]", word)}
        assert options <= known_options, (path.name, words)


def command_of(group, words: list[str]):
    """The command that words begin with, also one within another, and the words after it."""
    context = group.make_context("infomax", [], resilient_parsing=True)
    command = group
    while words and hasattr(command, "get_command"):
        inner = command.get_command(context, words[0])
        if inner is None:
            break
        command, words = inner, words[1:]
    return command, words


def test_the_notebooks_have_pictures_and_no_errors():
    notebooks = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
    assert len(notebooks) >= 2
    for path in notebooks:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        assert any("image/png" in output.get("data", {}) for output in outputs), path.name
        assert not [output for output in outputs if output["output_type"] == "error"], path.name


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as Markdown makes them of their text."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings)
    return {re.sub(r"[-\s]+", "-", heading) for heading in plain}


@pytest.mark.parametrize("path", LINKING, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_of_a_page_lead_to_a_file_and_a_heading(path):
    for target, anchor in LINK.findall(path.read_text(encoding="utf-8")):
        page = (path.parent / target).resolve() if target else path
        assert page.exists(), f"no such file: {target}"
        if anchor and page.suffix == ".md":
            assert anchor in anchors(page), f"no such heading: {target}#{anchor}"


def test_the_menu_of_the_site_has_every_page_once():
    menu = re.findall(
        r": ([\w/.-]+\.(?:md|ipynb))$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE
    )
    docs = ROOT / "docs"
    pages = [*docs.rglob("*.md"), *docs.rglob("*.ipynb")]
    assert sorted(menu) == sorted(str(page.relative_to(docs)) for page in pages)


def words_of(path: Path) -> int:
    """How many words a page has: its tables are counted, blocks of code and signs are not."""
    text = re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    return sum(any(sign.isalnum() for sign in token) for token in text.split())


@pytest.mark.parametrize(
    "path", sorted((ROOT / "docs/how-to").glob("*.md")), ids=lambda path: path.name
)
def test_a_how_to_page_has_at_most_500_words(path):
    assert words_of(path) <= 500


def test_all_pages_have_at_most_25000_words():
    assert sum(words_of(path) for path in (ROOT / "docs").rglob("*.md")) <= 25_000
