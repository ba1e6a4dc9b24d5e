"""Vectors of infomax beside those of other libraries, on the same work: accuracy, CPU seconds, memory, lines.

    python -m benchmarks.compared                                      # every row that compared.json lacks
    python -m benchmarks.compared --method pecanpy --graph cora        # one row, measured again
    python -m benchmarks.compared --page                               # docs/explanation/compared.md from compared.json

Each row runs in processes of its own, one thread, one after the other: once on the whole graph (classes, neighbours,
seconds, memory), and once without a tenth of the edges (edges). The peers are installed into an environment of their
own, from compared-requirements.txt; what cannot be installed or does not end says so in its row.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.compared_graphs import NAMES, TYPED, Task
from benchmarks.compared_methods import METHODS, OURS, lines
from infomax.version import __version__

HERE = Path(__file__).parent
RESULTS = HERE / "compared.json"
PEERS = (
    "pycleora",
    "pecanpy",
    "scikit-network",
    "scikit-learn",
    "torch",
    "torch-geometric",
    "numpy",
)
THREADS = ("OMP", "MKL", "OPENBLAS", "NUMBA", "RAYON")


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure rows, or write the page; returns 1 where a row of ours fails."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--method", action="append", choices=[*METHODS], help="  [default: all]")
    options.add_argument("--graph", action="append", help=f"{', '.join(NAMES)}  [default: all]")
    options.add_argument(
        "--peers",
        type=Path,
        metavar="VENV",
        help="the peers' environment; made where there is none",
    )
    options.add_argument("--json", type=Path, default=RESULTS, metavar="FILE")
    options.add_argument(
        "--machine",
        default=platform.processor() or platform.machine(),
        help="its name in the results",
    )
    options.add_argument(
        "--seconds", type=int, default=1200, help="the most CPU seconds of a process"
    )
    options.add_argument("--memory", type=int, default=12, help="the most GB of a process")
    options.add_argument(
        "--page", action="store_true", help="write docs/explanation/compared.md from the results"
    )
    settings = options.parse_args(arguments)
    if settings.page:
        from benchmarks.compared_page import write_page

        write_page(settings.json)
        return 0
    failed = 0
    for graph, method in _wanted(settings, _read(settings.json)):
        row = measure(method, graph, settings)
        results = _read(settings.json)  # another process may have added to it meanwhile
        failed |= method in OURS and "failed" in row
        results["rows"] = [
            *(each for each in results["rows"] if _key(each) != (graph, method)),
            row,
        ]
        results["rows"].sort(
            key=lambda each: (_place(NAMES, each["graph"]), _place([*METHODS], each["method"]))
        )
        results["versions"] = {
            **results.get("versions", {}),
            **_versions(interpreter(method, settings.peers)[0]),
        }
        settings.json.write_text(json.dumps(results, indent=1) + "\n")
        told = row.get("failed") or f"{row['accuracy']:.1f} %, {row['cpu_s']:.1f} CPU s"
        print(f"{graph} {method}: {told}", flush=True)
    return failed


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {"rows": []}


def measure(method: str, name: str, settings: argparse.Namespace) -> dict[str, Any]:
    """One row: a method on a graph."""
    row = {"graph": name, "method": method, "lines": lines(method), **_about(settings.machine)}
    python, told = interpreter(method, settings.peers)
    if told:
        return row | {"failed": told}
    task = Task.of(name)
    row |= {
        "nodes": task.graph.num_nodes,
        "edges": task.graph.num_edges,
        "features": task.graph.num_features,
    }
    with tempfile.TemporaryDirectory() as folder:
        # The run that is timed comes last: the first one compiles and caches what a library
        # compiles once.
        for hold_out in (True, False) if task.has_edges_to_score else (False, False):
            source, out = Path(folder, "arrays.npz"), Path(folder, "vectors.npy")
            held_out = task.save(source, hold_out=hold_out)
            spent = run(python, method, source, out, settings)
            if "failed" in spent:
                return row | spent
            vectors = np.load(out)
            if held_out is not None:
                row["edges_auc"] = task.edges(vectors, held_out)
        row |= spent | {"width": vectors.shape[1]} | task.classes(vectors)
    return row


def run(
    python: str, method: str, source: Path, out: Path, settings: argparse.Namespace
) -> dict[str, Any]:
    """Run a method in a process of its own: seconds and memory, or why it failed."""
    environment = (
        os.environ | {f"{name}_NUM_THREADS": "1" for name in THREADS} | {"CUDA_VISIBLE_DEVICES": ""}
    )
    # Ours is the code of this checkout, whatever is installed; the commit of the row is that of it.
    environment["PYTHONPATH"] = os.pathsep.join(
        [str(HERE.parent), *([str(HERE.parent / "src")] if method in OURS else [])]
    )

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (settings.seconds, settings.seconds + 5))
        resource.setrlimit(resource.RLIMIT_AS, (settings.memory << 30, settings.memory << 30))

    command = [python, "-m", "benchmarks.compared_methods", method, str(source), str(out)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        command,
        env=environment,
        cwd=source.parent,
        capture_output=True,
        text=True,
        preexec_fn=limit,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if done.returncode in (-signal.SIGXCPU, -signal.SIGKILL) and cpu > settings.seconds - 5:
        return {"failed": f"not done after {settings.seconds:,} CPU seconds"}
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        short = any(
            word in done.stderr
            for word in ("MemoryError", "bad_alloc", "allocate memory", "Unable to allocate")
        )
        return {"failed": f"more than {settings.memory} GB of memory" if short else last[:200]}
    return {"cpu_s": cpu, **json.loads(done.stdout.strip().splitlines()[-1])}


def interpreter(method: str, venv: Path | None) -> tuple[str, str]:
    """The Python that runs a method, and why there is none, if so; makes the peers' environment
    where it is missing."""
    if method in OURS:
        return sys.executable, ""
    folder = venv or HERE.parent / ".venv-peers"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        requirements = HERE / "compared-requirements.txt"
        pip = [str(python), "-m", "pip", "install", "-q"]
        if subprocess.run([*pip, "-r", str(requirements)], check=False).returncode:
            for line in (
                requirements.read_text().splitlines()
            ):  # one by one: what can be installed is measured
                if line and line[0] != "#":
                    subprocess.run([*pip, line], check=False)
    imports = {"svd": "sklearn", "sgc": "scipy", "pyg-dgi": "torch_geometric"}
    library = imports.get(
        method, "sknetwork" if method in ("spectral", "gsvd", "random-projection") else ""
    )
    library = library or method.partition("-")[0]
    done = subprocess.run(
        [str(python), "-c", f"import {library}"], capture_output=True, text=True, check=False
    )
    return str(python), "not installed: " + done.stderr.strip().splitlines()[
        -1
    ] if done.returncode else ""


def _wanted(settings: argparse.Namespace, results: dict[str, Any]) -> list[tuple[str, str]]:
    """Graphs and methods to measure: one row that was named, or of several those that are not there
    yet."""
    graphs, methods = settings.graph or NAMES, settings.method or METHODS
    pairs = [
        (graph, method)
        for graph in graphs
        for method in methods
        if graph not in TYPED or method == "infomax"
    ]
    known = set() if len(pairs) == 1 else {_key(row) for row in results["rows"]}
    return [pair for pair in pairs if pair not in known]


def _key(row: dict[str, Any]) -> tuple[str, str]:
    return row["graph"], row["method"]


def _place(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


def _about(machine: str) -> dict[str, Any]:
    """Where and when a row is measured: machine, commit, load."""
    words = [
        "git",
        "-C",
        str(HERE),
        "describe",
        "--always",
        "--dirty",
        "--exclude=*",
    ]  # dirty: files have changed since
    commit = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
    day = datetime.now(UTC).date().isoformat()
    load = round(os.getloadavg()[0], 1)
    return {"machine": machine, "cores": os.cpu_count(), "commit": commit, "day": day, "load": load}


def _versions(python: str) -> dict[str, dict[str, str]]:
    """The versions of what a row may have used, by environment."""
    code = (
        "import importlib.metadata as m, json\n"
        f"names = {PEERS!r}\nhere = {{d.metadata['Name'].lower() for d in m.distributions()}}\n"
        "print(json.dumps({name: m.version(name) for name in names if name in here}))"
    )
    found = json.loads(
        subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout
    )
    return (
        {"infomax": found | {"infomax": __version__}}
        if python == sys.executable
        else {"peers": found}
    )


if __name__ == "__main__":
    sys.exit(main())
