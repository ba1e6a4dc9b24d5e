"""Seconds from typing a command to its end, beside importing torch and beside a script with PyG."""

from __future__ import annotations

import argparse
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
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run every command several times, in turns, and print the best of each."""
    options = parser(__doc__, dataset="cora", peers=("pyg",))
    options.add_argument("--repeats", type=int, default=3)
    options.add_argument(
        "--epochs", type=int, default=None, help="epochs of training  [default: the preset's stopping]"
    )
    options.add_argument("--after", action="store_true", help="also map, analyse and neighbours --all")
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
        }
        for name, found in runs.items()
    ]
    report(settings, f"Whole commands on {settings.dataset}, best of {settings.repeats}", rows, COLUMNS)


def _commands(settings: argparse.Namespace, folder: Path, turn: int) -> dict[str, list[str]]:
    """The commands of one turn, by name; those that read a run come after the one that writes it."""
    run, vectors, device = str(folder / f"run-{turn}"), str(folder / f"vectors-{turn}.npy"), settings.device
    infomax = [sys.executable, "-m", "infomax"]
    waking = "import torch" + ("; torch.zeros(1).cuda()" if device == "cuda" else "")
    epochs = [] if settings.epochs is None else ["--epochs", str(settings.epochs)]
    commands = {
        "import torch": [sys.executable, "-c", waking],
        "info": [*infomax, "info", settings.graph],
        "train": [*infomax, "train", settings.graph, "--out", run, "--device", device, *epochs],
        "embed": [*infomax, "embed", run, "--out", str(folder / f"ours-{turn}.npy")],
        "embed, computed": [*infomax, "embed", run, settings.graph, "--out", vectors, "--device", device],
        "neighbours": [*infomax, "neighbours", run, "0"],
        "evaluate": [*infomax, "evaluate", run],
    }
    if settings.after:
        commands |= {
            "evaluate --no-raw": [*infomax, "evaluate", run, "--no-raw"],
            "map": [*infomax, "map", run, "--out", str(folder / f"map-{turn}.html")],
            "analyse": [*infomax, "analyse", run, "--out", str(folder / f"report-{turn}")],
            "neighbours --all": [*infomax, "neighbours", run, "--all", "--out", str(folder / f"near-{turn}.parquet")],
        }
    if "pyg" in settings.peers:
        script = Path(__file__).with_name("pyg_script.py")
        source = _arrays(settings.dataset, folder / "arrays.npz")
        commands["PyG's script"] = [
            sys.executable, str(script), str(source), vectors, str(settings.epochs or EPOCHS), device
        ]  # fmt: skip
    return commands


def _graph(dataset: str, folder: Path) -> str:
    """What to type for a data set: its name, or the file of ``pages:N``, a graph of N nodes in four classes."""
    if not dataset.startswith("pages:"):
        return dataset
    from benchmarks.problem import pages

    path = folder / "pages.npz"
    pages(int(float(dataset.partition(":")[2]))).save(path)
    return str(path)


def _arrays(dataset: str, path: Path) -> Path:
    """The graph as PyG wants it, written at the first call: dense ``x`` ``[N, F]`` and ``edge_index`` ``[2, E]``."""
    if not path.exists():
        import numpy as np
        from scipy import sparse

        from benchmarks.problem import load

        graph = load(dataset)
        x = graph.features.toarray() if sparse.issparse(graph.features) else graph.features
        np.savez(path, x=x.astype(np.float32), edge_index=np.stack(graph.adjacency.nonzero()).astype(np.int64))
    return path


if __name__ == "__main__":
    main()
