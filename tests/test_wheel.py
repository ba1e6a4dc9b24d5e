"""The wheel holds all that infomax needs: it runs in an environment of its own, far from the checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest
from sample_graphs import random_graph

from infomax.io.npz import write_npz
from infomax.version import __version__

ROOT = Path(__file__).parents[1]


def call(*words: object, cwd: Path | None = None) -> str:
    """What a command prints; without PYTHONPATH, which may lead to the checkout."""
    env = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, words)], capture_output=True, text=True, check=False, cwd=cwd, env=env
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A copy of what a release is built from."""
    folder = tmp_path_factory.mktemp("sources")
    clutter = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "src", folder / "src", ignore=clutter)
    for name in (
        "pyproject.toml",
        "README.md",
        "LICENSE",
        "MANIFEST.in",
        "CHANGELOG.md",
        "CITATION.cff",
    ):
        shutil.copy(ROOT / name, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(sources):
    """The wheel; nothing is fetched."""
    flags = ["--no-deps", "--no-index", "--no-build-isolation", "--disable-pip-version-check", "-q"]
    call(sys.executable, "-m", "pip", "wheel", *flags, "-w", sources, sources)
    (path,) = sources.glob("*.whl")
    return path


def test_every_file_of_the_package_is_in_the_wheel(wheel):
    files = (
        path
        for package in ("infomax", "infomax_paper")
        for path in (ROOT / "src" / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    )
    expected = {path.relative_to(ROOT / "src").as_posix() for path in files}
    found = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert found == expected


def test_the_wheel_says_what_an_index_shows(wheel):
    archive = zipfile.ZipFile(wheel)
    folder = f"infomax-{__version__}.dist-info"
    about = message_from_bytes(archive.read(f"{folder}/METADATA"))
    assert (about["Name"], about["Version"], about["License-Expression"]) == (
        "infomax",
        __version__,
        "MIT",
    )
    assert f"{folder}/licenses/LICENSE" in archive.namelist()
    assert about["Description-Content-Type"] == "text/markdown"
    assert about.get_payload(decode=True).decode() == (ROOT / "README.md").read_text(
        encoding="utf-8"
    )
    classifiers = about.get_all("Classifier")
    assert {f"Programming Language :: Python :: 3.{minor}" for minor in (11, 12, 13)} <= set(
        classifiers
    )
    assert not any(
        "License ::" in one for one in classifiers
    )  # an index refuses them beside an expression
    assert "infomax = infomax.cli:run" in archive.read(f"{folder}/entry_points.txt").decode()
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"version: {__version__}\n" in citation


def test_the_sdist_holds_what_the_wheel_is_built_from(sources):
    code = "import sys, setuptools.build_meta as made; print(made.build_sdist(sys.argv[1]))"
    name = call(sys.executable, "-c", code, sources, cwd=sources).split()[-1]
    with tarfile.open(sources / name) as archive:
        found = {entry.partition("/")[2] for entry in archive.getnames()}
    paths = (
        path
        for path in (sources / "src").rglob("*")
        if path.is_file() and "egg-info" not in str(path)
    )
    expected = {path.relative_to(sources).as_posix() for path in paths}
    assert {
        *expected,
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "CITATION.cff",
        "pyproject.toml",
    } <= found
    assert not any(name.startswith("tests/") for name in found)


@pytest.fixture(scope="module")
def python(wheel, tmp_path_factory):
    """The Python of an environment with nothing but the wheel; dependencies are read from where they are installed."""
    venv = tmp_path_factory.mktemp("environment") / "venv"
    call(sys.executable, "-m", "venv", "--without-pip", venv)
    (python,) = (path for path in venv.glob("*/*") if path.stem == "python")
    flags = ["--no-deps", "--no-index", "--disable-pip-version-check", "-q"]
    call(sys.executable, "-m", "pip", "--python", python, "install", *flags, wheel)
    # A path in a .pth file is added as it is: the link to the checkout that is installed there is not followed.
    Path(site(python), "dependencies.pth").write_text(
        sysconfig.get_path("purelib") + "\n", encoding="utf-8"
    )
    return python


def site(python: Path) -> str:
    return call(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip()


def test_the_wheel_runs_without_the_checkout(python, tmp_path):
    place = call(python, "-c", "import infomax; print(infomax.__file__)", cwd=tmp_path).strip()
    assert Path(place).is_relative_to(site(python))
    write_npz(random_graph(60), tmp_path / "graph.npz")
    infomax = python.with_name("infomax")
    assert call(infomax, "--version").startswith("infomax ")
    assert "DGI" in call(infomax, "reproduce", "--help")
    assert "34,003" in call(infomax, "info", "debian", cwd=tmp_path)
    call(infomax, "train", "graph.npz", "--dim", 4, "--epochs", 1, "--out", "run", cwd=tmp_path)
    call(infomax, "map", "run", "--out", "map.html", cwd=tmp_path)
    assert "</html>" in (tmp_path / "map.html").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_demo_runs_from_the_wheel(python, tmp_path):
    call(python.with_name("infomax"), "demo", cwd=tmp_path)
    written = {path.name for path in (tmp_path / "demo").iterdir()}
    assert written == {"run", "embeddings.npz", "report.json", "debian.png", "map.html"}
