"""Seconds from typing a command to its end, beside importing torch, a script with PyG, and the last figures kept.

`felt.json` holds the last figures of each machine, by data set and command; ``--keep N1`` writes those of this run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.command import parser, report, timed

EPOCHS = 300
"""Epochs of PyG's script: those of PyG's own example."""
COLUMNS = {
    "command": "{command}",
    "best s": "{best_s:.2f}",
    "first s": "{first_s:.2f}",
    "CPU s": "{cpu_s:.2f}",
    "to import torch": "{ratio:.2f}",
    "last: s, CPU s": "{last}",
}
LAST = Path(__file__).with_name("felt.json")
"""Data set -> machine -> command -> best seconds by the clock, and of CPU time; null where one was
not measured."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every command several times, in turns, and print the best of each."""
    options = parser(__doc__, dataset="cora", peers=("pyg",))
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument(
        "--epochs",
        type=int,
        default=None,
        help="epochs of training  [default: the preset's stopping]",
    )
    options.add_argument(
        "--after", action="store_true", help="also map, analyse and neighbours --all"
    )
    options.add_argument(
        "--keep", metavar="MACHINE", help="write the figures to felt.json as those of this machine"
    )
    settings = options.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        settings.graph = _graph(settings.dataset, Path(folder))
        runs: dict[str, list[tuple[float, float]]] = {}
        for turn in range(settings.repeats):
            for name, command in _commands(settings, Path(folder), turn).items():
                runs.setdefault(name, []).append(timed([command], settings.threads))
    torch_s = min(wall for wall, _ in runs["import torch"])
    rows: list[dict[str, Any]] = [
        {
            "command": name,
            "best_s": min(wall for wall, _ in found),
            "first_s": found[0][0],
            "cpu_s": min(cpu for _, cpu in found),
            "ratio": min(wall for wall, _ in found) / torch_s,
            "last": last(settings.dataset, name),
        }
        for name, found in runs.items()
    ]
    if settings.keep:
        keep(settings.dataset, settings.keep, rows)
    report(
        settings, f"Whole commands on {settings.dataset}, best of {settings.repeats}", rows, COLUMNS
    )


def last(dataset: str, command: str, path: Path = LAST) -> str:
    """What each machine took for a command the last time, in words; "" where none is known."""
    machines = json.loads(path.read_text()).get(dataset, {})
    known = {
        machine: figures[command] for machine, figures in machines.items() if command in figures
    }
    told = (
        f"{machine} " + ", ".join("-" if each is None else f"{each:.2f}" for each in known[machine])
        for machine in known
    )
    return "; ".join(told)


def keep(dataset: str, machine: str, rows: Sequence[dict[str, Any]], path: Path = LAST) -> None:
    """Write the figures of a run as the last ones of a machine; commands that were not run keep
    theirs."""
    figures = json.loads(path.read_text())
    kept = figures.setdefault(dataset, {}).setdefault(machine, {})
    kept |= {row["command"]: [round(row["best_s"], 2), round(row["cpu_s"], 2)] for row in rows}
    path.write_text(json.dumps(figures, indent=1) + "\n")


def _commands(settings: argparse.Namespace, folder: Path, turn: int) -> dict[str, list[str]]:
    """The commands of one turn, by name; those that read a run come after the one that writes
    it."""
    run, vectors, device = (
        str(folder / f"run-{turn}"),
        str(folder / f"vectors-{turn}.npy"),
        settings.device,
    )
    infomax = [sys.executable, "-m", "infomax"]
    waking = "import torch" + ("; torch.zeros(1).cuda()" if device == "cuda" else "")
    epochs = [] if settings.epochs is None else ["--epochs", str(settings.epochs)]
    commands = {
        "import torch": [sys.executable, "-c", waking],
        "info": [*infomax, "info", settings.graph],
        "train": [*infomax, "train", settings.graph, "--out", run, "--device", device, *epochs],
        "embed": [*infomax, "embed", run, "--out", str(folder / f"ours-{turn}.npy")],
        "embed, computed": [
            *infomax,
            "embed",
            run,
            settings.graph,
            "--out",
            vectors,
            "--device",
            device,
        ],
        "neighbours": [*infomax, "neighbours", run, "0"],
        "evaluate": [*infomax, "evaluate", run],
    }
    if settings.after:
        commands |= {
            "evaluate --no-raw": [*infomax, "evaluate", run, "--no-raw"],
            "map": [*infomax, "map", run, "--out", str(folder / f"map-{turn}.html")],
            "analyse": [*infomax, "analyse", run, "--out", str(folder / f"report-{turn}")],
            "neighbours --all": [
                *infomax,
                "neighbours",
                run,
                "--all",
                "--out",
                str(folder / f"near-{turn}.parquet"),
            ],
        }
    if "pyg" in settings.peers:
        script = Path(__file__).with_name("pyg_script.py")
        source = _arrays(settings.graph, folder / "arrays.npz")
        # Without -P Python would take types.py beside the script for its own module.
        commands["PyG's script"] = [
            sys.executable, "-P", str(script), str(source), vectors, str(settings.epochs or EPOCHS), device
        ]  # fmt: skip
    return commands


def _graph(dataset: str, folder: Path) -> str:
    """What to type for a data set: its name, or the file of ``pages:N``, a graph of N nodes in four
    classes."""
    if not dataset.startswith("pages:"):
        return dataset
    from benchmarks.problem import pages

    path = folder / "pages.npz"
    pages(int(float(dataset.partition(":")[2]))).save(path)
    return str(path)


def _arrays(source: str, path: Path) -> Path:
    """The graph as PyG wants it, written at the first call: dense ``x`` ``[N, F]`` and
    ``edge_index`` ``[2, E]``."""
    if not path.exists():
        import numpy as np
        from scipy import sparse

        from benchmarks.problem import load
        from infomax import read_graph

        graph = read_graph(source) if Path(source).exists() else load(source)
        x = graph.features.toarray() if sparse.issparse(graph.features) else graph.features
        np.savez(
            path,
            x=x.astype(np.float32),
            edge_index=np.stack(graph.adjacency.nonzero()).astype(np.int64),
        )
    return path


if __name__ == "__main__":
    main()
