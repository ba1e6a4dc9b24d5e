"""Damaged files: every reader gives the content or an `InputError`, never another exception or a wrong byte."""

from __future__ import annotations

import json
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet

from benchmarks.faults.children import Trials, run
from benchmarks.faults.kills import small_graph
from infomax import DGI, Embeddings, Graph, InputError, read_graph
from infomax.io.npz import write_npz
from infomax.training import checkpoints, runs

_TOKENS = (
    b"\0",
    b"\xff" * 8,
    b"nan",
    b"1e999",
    b'"',
    b"\n",
    b",",
    b"-1",
    b"9" * 40,
    b"[" * 5000,
    b"\xef\xbb\xbf",
    b"{}",
)
BATCH = 500


@dataclass(frozen=True)
class Target:
    """A file to damage, and how it is read; ``exact``: where it is read at all, the content must be
    the original's."""

    path: Path
    read: Callable[[], Any]
    exact: bool = False


def targets(folder: Path) -> list[Target]:
    """One file of every kind that is read, written anew into the folder."""
    graph = small_graph()
    edges = np.array(graph.adjacency.nonzero())
    names = graph.ids.tolist()
    pairs = {"source": graph.ids[edges[0]].tolist(), "target": graph.ids[edges[1]].tolist()}
    nodes = {
        "id": names,
        **{f"x{at}": graph.features[:, at] for at in range(3)},
        "kind": graph.labels["kind"].tolist(),
    }
    return [
        *_tables(folder, pairs, nodes),
        *_graphs(folder, graph),
        *_run(folder),
        *_vectors(folder),
    ]


def _tables(folder: Path, edges: dict[str, Any], nodes: dict[str, Any]) -> Iterator[Target]:
    for suffix in ("csv", "tsv", "parquet"):
        place = folder / f"tables-{suffix}"
        place.mkdir()
        for name, columns in (("edges", edges), ("nodes", nodes)):
            path = place / f"{name}.{suffix}"
            if suffix == "parquet":
                parquet.write_table(pa.table(columns), path)
            else:
                mark = "," if suffix == "csv" else "\t"
                rows = [list(columns), *zip(*columns.values(), strict=True)]
                path.write_text("".join(mark.join(map(str, row)) + "\n" for row in rows))
            yield Target(path, lambda place=place: _summary(read_graph(place, labels="kind")))


def _graphs(folder: Path, graph: Graph) -> Iterator[Target]:
    for compress in (False, True):
        path = folder / f"graph-{compress}.npz"
        write_npz(graph, path)
        if compress:
            np.savez_compressed(path, **np.load(path))
        yield Target(path, lambda path=path: _summary(read_graph(path)), exact=True)
    path = folder / "graph.graphml"
    networkx.write_graphml(networkx.from_scipy_sparse_array(graph.adjacency), path)
    yield Target(path, lambda: _summary(read_graph(path)))


def _run(folder: Path) -> Iterator[Target]:
    place = folder / "run"
    DGI(dim=4, epochs=1, scale="columns").fit(small_graph(), run=place)

    def load() -> list[Any]:
        model = DGI.load(place)
        return [model.transform(model.graph_).vectors.tolist(), model.graph_.ids.tolist()]

    for name in (runs.CONFIG, runs.GRAPH, runs.MODEL, runs.HEALTH):
        yield Target(place / name, load, exact=True)
    path = folder / runs.CHECKPOINT
    checkpoints.save(
        path, {"a": torch.arange(50.0), "b": torch.ones(3, 4)}, {"values": list(range(50))}
    )
    yield Target(path, lambda: [repr(part) for part in checkpoints.load(path)], exact=True)


def _vectors(folder: Path) -> Iterator[Target]:
    vectors = np.random.default_rng(1).normal(size=(30, 4)).astype(np.float32)
    for suffix in ("parquet", "npy", "npz", "csv", "tsv", "kv"):
        path = folder / f"vectors.{suffix}"
        Embeddings(vectors, np.array([f"id-{row}" for row in range(30)])).save(path)
        yield Target(
            path, lambda path=path: Embeddings.read(path).vectors.tolist(), exact=suffix == "npz"
        )


def _summary(graph: Graph) -> list[Any]:
    features = (
        graph.features if isinstance(graph.features, np.ndarray) else graph.features.toarray()
    )
    columns = {name: column.tolist() for name, column in graph.labels.items()}
    return [graph.adjacency.toarray().tolist(), features.tolist(), graph.ids.tolist(), columns]


def mutate(content: bytes, rng: np.random.Generator) -> bytes:
    """Damage the content in one of eight ways, one to three times."""
    damaged = bytearray(content)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(damaged) + 1))
        size = int(rng.integers(1, 33))
        match int(rng.integers(8)):
            case 0:
                for place in rng.integers(len(damaged), size=size // 4 + 1) if damaged else ():
                    damaged[place] ^= 1 << int(rng.integers(8))
            case 1:
                damaged[at : at + size] = rng.bytes(size)
            case 2:
                del damaged[at:]
            case 3:
                del damaged[at : at + size]
            case 4:
                damaged[at:at] = damaged[at : at + size]
            case 5:
                damaged[at:at] = _TOKENS[int(rng.integers(len(_TOKENS)))]
            case 6:
                other = int(rng.integers(len(damaged) + 1))
                damaged[at : at + size] = damaged[other : other + size]
            case _:
                damaged[at : at + size] = bytes([int(rng.choice([0, 255]))]) * size
    return bytes(damaged)


def examine(folder: Path, seed: int, first: int, last: int) -> list[str]:
    """Damage and read the files of these numbers; the faults. Each number is one file, damaged in
    one way."""
    found: list[str] = []
    files = targets(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        originals = [(target.path.read_bytes(), target.read()) for target in files]
        for number in range(first, last):
            rng = np.random.default_rng([seed, number])
            which = int(rng.integers(len(files)))
            target, (content, expected) = files[which], originals[which]
            damaged = mutate(content, rng)
            target.path.write_bytes(damaged)
            (folder / "number").write_text(str(number))
            where = f"file {number} of seed {seed} ({target.path.relative_to(folder)})"
            try:
                if target.read() != expected and target.exact:
                    found.append(f"{where}: read as another content")
            except InputError:
                pass
            except Exception as error:
                found.append(f"{where}: {type(error).__name__}: {error}")
            target.path.write_bytes(content)
    return found


def _batch(folder: Path, seed: int, first: int, last: int) -> None:
    torch.set_num_threads(1)
    (folder / "faults.json").write_text(json.dumps(examine(folder / "files", seed, first, last)))


def campaign(folder: Path, seed: int, files: int) -> Trials:
    """Damage that many files, in processes that may crash."""
    for first in range(0, files, BATCH):
        place, last = folder / f"batch-{first}", min(first + BATCH, files)
        (place / "files").mkdir(parents=True)
        if code := run(_batch, place, seed, first, last):
            number = (place / "files" / "number").read_text()
            yield last - first, [f"file {number} of seed {seed}: the process ended with {code}"]
        else:
            yield last - first, json.loads((place / "faults.json").read_text())
        shutil.rmtree(place)
