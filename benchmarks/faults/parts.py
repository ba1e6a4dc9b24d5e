"""Damaged parts of vectors: read as they were, refused, or written again as they were."""

from __future__ import annotations

import io
import json
import os
import shutil
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pyarrow import parquet
from scipy import sparse

from benchmarks.faults.children import Trials, run
from benchmarks.faults.mutations import mutate
from infomax import DGI, Embeddings, Graph, InputError
from infomax.embeddings import StoredEmbeddings
from infomax.training import embed as engine
from infomax.training import vectors as embedding

BATCH = 300
_NODE = 7


def write(folder: Path, nodes: int = 120) -> DGI:
    """Write a graph folder, and the vectors of a model in three parts."""
    embedding.NODES_PER_PART, engine.NODES_PER_BLOCK_ON_DISK = 50, {"cpu": 20}
    rng = np.random.default_rng(0)
    features = rng.normal(size=(nodes, 6)).astype(np.float32)
    Graph.from_scipy(sparse.random_array((nodes, nodes), density=0.05, rng=rng), features).save(
        folder / "g.graph"
    )
    model = DGI(dim=4, epochs=1, preset="batches", device="cpu").fit(Graph.open(folder / "g.graph"))
    model.write_vectors(model.graph_, folder / "vectors")
    return model


def answers(vectors: Path) -> dict[str, Callable[[], Any]]:
    """What is read of a folder of parts."""
    disk = StoredEmbeddings.open
    return {
        "all rows": lambda: Embeddings.read(vectors).vectors.tolist(),
        "blocks": lambda: [block.tolist() for block in disk(vectors).vectors.blocks()],
        "some rows": lambda: disk(vectors).vectors[[3, 60, 119]].tolist(),
        "ids": lambda: disk(vectors).ids.tolist(),
        "neighbours": lambda: disk(vectors).neighbours(_NODE, 3),
    }


def examine(folder: Path, seed: int, first: int, last: int) -> list[str]:
    """Damage a file per number, read all there is, and embed again; the faults."""
    model, vectors, found = write(folder), folder / "vectors", list[str]()
    contents = {path: path.read_bytes() for path in sorted(vectors.iterdir())}
    times = {path: (path.stat().st_atime_ns, path.stat().st_mtime_ns) for path in contents}
    expected = {name: read() for name, read in answers(vectors).items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for number in range(first, last):
            rng = np.random.default_rng([seed, number])
            path = list(contents)[int(rng.integers(len(contents)))]
            damaged = mutate(contents[path], rng)
            path.write_bytes(damaged)
            if rng.random() < 0.5:
                os.utime(path, ns=times[path])
            (folder / "number").write_text(str(number))
            where = f"file {number} of seed {seed} ({path.name})"
            for name, read in answers(vectors).items():
                found += _told(f"{where}, {name}", read, (expected[name],))
            found += _told(where, partial(_embed, model, vectors, contents, path), ([],))
            for place, content in contents.items():
                if place.read_bytes() != content:
                    place.write_bytes(content)
                os.utime(place, ns=times[place])
    return found


def _embed(model: DGI, vectors: Path, contents: dict[Path, bytes], path: Path) -> list[str]:
    """Embed again; names of files that are not as they were then.

    A footer may keep a byte that nobody reads: then the vectors are compared.
    """
    damaged, refused = path.read_bytes(), False
    try:
        model.write_vectors(model.graph_, vectors)
    except InputError:
        refused = True
    wanted = dict(contents)
    if refused and path in wanted:
        wanted[path] = damaged
    found = {place: place.read_bytes() for place in vectors.iterdir()}
    differ = [place for place in wanted | found if wanted.get(place) != found.get(place)]
    return sorted(
        place.name
        for place in differ
        if refused or not _same(place, wanted.get(place), found.get(place))
    )


def _same(place: Path, first: bytes | None, second: bytes | None) -> bool:
    """Whether two contents of a file are the same vectors, or the same values of JSON."""
    try:
        if place.suffix == ".parquet":
            one, other = (
                parquet.read_table(io.BytesIO(content or b"")) for content in (first, second)
            )
            return bool(one.equals(other))
        return bool(json.loads(first or b"") == json.loads(second or b""))
    except (ValueError, OSError):
        return False


def _told(where: str, work: Callable[[], Any], allowed: tuple[Any, ...]) -> Iterator[str]:
    """Any exception but `InputError`, and any result but those allowed."""
    try:
        if (found := work()) not in allowed:
            yield f"{where}: found {str(found)[:100]}"
    except InputError:
        pass
    except Exception as error:
        yield f"{where}: {type(error).__name__}: {error}"


def _batch(folder: Path, seed: int, first: int, last: int) -> None:
    torch.set_num_threads(1)
    (folder / "faults.json").write_text(json.dumps(examine(folder, seed, first, last)))


def campaign(folder: Path, seed: int, files: int) -> Trials:
    """Damage that many files, in processes that may crash."""
    for first in range(0, files, BATCH):
        place, last = folder / f"batch-{first}", min(first + BATCH, files)
        place.mkdir()
        if code := run(_batch, place, seed, first, last):
            number = (place / "number").read_text()
            yield last - first, [f"file {number} of seed {seed}: the process ended with {code}"]
        else:
            yield last - first, json.loads((place / "faults.json").read_text())
        shutil.rmtree(place)
