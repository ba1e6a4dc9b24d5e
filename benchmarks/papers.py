"""The shape of ogbn-papers100M on one GPU: from a graph folder on disk to weights, and to vectors on disk.

    python -m benchmarks.papers --folder FOLDER [--nodes 111e6 --degree 29 --device cuda] [--parts-alone] [--no-vectors]

The graph is generated on the GPU: random edges, of which one end in two prefers nodes with low numbers (so there are
hubs), and features of 128 numbers around one of 50 centres, in half precision. A graph of this shape takes 43 GB on
disk, and its vectors, of 64 + 128 + 128 + 32 columns in half precision, 78 GB: --no-vectors computes them and writes
none. --parts-alone measures each part as well. Before a stage the files that it reads are dropped from the page cache.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
import torch

from benchmarks import parts
from benchmarks.large import measured
from infomax.arrays import folder_layout as layout
from infomax.arrays.scaling import Statistics
from infomax.io.array_files import ROWS_PER_GROUP, ArrayWriter
from infomax.io.graph_folder import finish

FEATURES, CENTRES, RANGES = 128, 50, 64
ROWS = 1 << 20


def main(words: list[str] | None = None) -> None:
    """Generate the folder if there is none, then train and embed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--nodes", type=float, default=111e6)
    parser.add_argument("--degree", type=float, default=28.8, help="Mean number of neighbours.")
    parser.add_argument("--dim", type=int, default=64)
    parser.add_argument("--device", default="cuda", choices=["cpu", "cuda"])
    parser.add_argument("--steps", type=int, help="Steps of the trainings; default: the preset's.")
    parser.add_argument("--parts-alone", action="store_true", help="Measure each part, too.")
    parser.add_argument(
        "--no-vectors", action="store_true", help="Compute the vectors, and write none."
    )
    parser.add_argument(
        "--no-second-training", action="store_true", help="Do not train again from the page cache."
    )
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(words)
    width = ["--dim", options.dim, "--device", options.device]
    if options.steps is not None:
        width += ["--steps", options.steps]
    graph, run, vectors = (options.folder / name for name in ("papers.graph", "run", "vectors"))
    began = time.perf_counter()
    if not (graph / layout.DESCRIPTION).exists():
        generate(graph, int(options.nodes), int(options.nodes * options.degree / 2), options.device)
    print(
        f"generated in {time.perf_counter() - began:.0f} s, {_bytes(graph) / 1e9:.1f} GB",
        flush=True,
    )
    infomax = [sys.executable, "-m", "infomax"]
    stages = {"train": [*infomax, "train", graph, "--out", run, *width]}
    if not options.no_vectors:
        stages["embed"] = [*infomax, "embed", run, "--out", f"{vectors}/", "--half"]
    if not options.no_second_training:
        again = options.folder / "again"
        stages["train, files in memory"] = [*infomax, "train", graph, "--out", again, *width]
    rows = []
    for name, command in stages.items():
        if "memory" not in name:
            _forget(graph)
        rows.append({"stage": name, **measured([str(word) for word in command])})
        print(
            "{stage:23} {seconds:7.1f} s  CPU {cpu:7.1f} s  RSS {rss:5.1f} GB  RssAnon {anonymous:5.1f} GB".format(
                **rows[-1]
            ),
            flush=True,
        )
    if not options.no_vectors:
        print(f"vectors: {_bytes(vectors) / 1e9:.1f} GB", flush=True)
    if options.parts_alone or options.no_vectors:
        _forget(graph)
        parts.main(["--run", str(run), "--graph", str(graph), "--device", options.device])
    if options.json is not None:
        options.json.write_text(
            json.dumps({"nodes": int(options.nodes), "rows": rows}, indent=2) + "\n"
        )


def generate(folder: Path, n: int, edges: int, device: str = "cuda", seed: int = 0) -> None:
    """Write a graph folder of n nodes; duplicate edges and self-loops are dropped."""
    import pyarrow as pa
    from pyarrow import parquet

    folder.mkdir(parents=True)
    place = torch.device(device)
    generator = torch.Generator(place).manual_seed(seed)
    source = torch.randint(n, (edges,), generator=generator, device=place, dtype=torch.int32)
    target = torch.empty_like(source)
    for part, fro in zip(target.split(ROWS << 4), source.split(ROWS << 4), strict=True):
        drawn = torch.rand(len(part), generator=generator, device=place, dtype=torch.float64)
        hub = torch.rand(len(part), generator=generator, device=place) < 0.5
        other = (torch.where(hub, drawn**2, drawn) * n).long().clamp_(max=n - 1)
        near = torch.rand(len(part), generator=generator, device=place) < 0.5  # of the same centre
        part.copy_(
            torch.where(near, (other - other % CENTRES + fro % CENTRES).clamp_(max=n - 1), other)
        )
    entries = 0
    with (
        ArrayWriter(folder / layout.STARTS, np.int64) as starts,
        ArrayWriter(folder / layout.NEIGHBOURS, np.int32) as neighbours,
    ):
        starts.append(np.zeros(1))
        for first in range(0, n, -(-n // RANGES)):
            last = min(first + -(-n // RANGES), n)
            keys = []
            for row, column in ((source, target), (target, source)):
                inside = (row >= first) & (row < last) & (row != column)
                keys.append((row[inside].long() - first) * n + column[inside])
            key = torch.unique(torch.cat(keys))  # sorted
            neighbours.append((key % n).int().cpu().numpy())
            counts = torch.bincount(key // n, minlength=last - first)
            starts.append((entries + counts.cumsum(0)).cpu().numpy())
            entries += len(key)
    del source, target
    total = squares = torch.zeros(FEATURES, dtype=torch.float64, device=place)
    centres = torch.randn(CENTRES, FEATURES, generator=generator, device=place)
    schema = pa.schema([("id", pa.int64())])
    with (
        ArrayWriter(folder / layout.FEATURES, np.float16, FEATURES) as writer,
        parquet.ParquetWriter(folder / layout.NODES, schema, use_dictionary=False) as ids,
    ):
        for first in range(0, n, ROWS):
            rows = torch.arange(first, min(first + ROWS, n), device=place)
            x = centres[rows % CENTRES] + 2 * torch.randn(
                len(rows), FEATURES, generator=generator, device=place
            )
            x = x.half()
            total, squares = total + x.double().sum(0), squares + x.double().square().sum(0)
            writer.append(x.cpu().numpy())
            ids.write_table(
                pa.table([rows.cpu().numpy() * 7 + 3], schema=schema), row_group_size=ROWS_PER_GROUP
            )
    mean = (total / n).cpu().numpy()
    known = Statistics(mean, (squares / n).cpu().numpy() - mean**2, n * FEATURES, has_negative=True)
    about = {
        "nodes": n,
        "edges": entries // 2,
        "directed": False,
        "weighted": False,
        "labels": [],
        "splits": [],
        "edge_columns": None,
        "schema": None,
    }
    about |= {
        "feature_names": [f"x{column}" for column in range(FEATURES)],
        "statistics": known.to_json(),
    }
    finish(
        folder,
        about
        | {"dropped": {"self_loops": 0, "duplicates": edges - entries // 2, "zero_weights": 0}},
    )
    if device == "cuda":
        torch.cuda.empty_cache()


def _forget(folder: Path) -> None:
    """Write the files of a folder to disk and drop them from the page cache."""
    os.sync()
    for path in folder.iterdir():
        with path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())


if __name__ == "__main__":
    main()
