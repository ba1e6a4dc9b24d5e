"""Crafted files: small ones that would take much memory or time, or that try to run code."""

from __future__ import annotations

import io
import json
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from benchmarks.faults.children import Trials, run
from infomax import DGI, Embeddings, InputError, read_graph
from infomax.datasets import planetoid
from infomax.training import runs

MOST_BYTES, MOST_SECONDS = 300_000_000, 20.0
"""What reading a crafted file may take."""

Case = Callable[[Path], Callable[[], Any]]
"""Writes files into a folder; what it returns reads them."""

EDGE = np.array([[0], [1]])


def npz(compress: bool = True, **arrays: Any) -> Case:
    """An npz of a graph."""

    def write(folder: Path) -> Callable[[], Any]:
        path = folder / "graph.npz"
        (np.savez_compressed if compress else np.savez)(path, **{"edges": EDGE} | arrays)
        return lambda: read_graph(path)

    return write


def csr(shape: list[int], **parts: Any) -> Case:
    """An npz of a graph whose sparse features claim a shape."""
    whole = {
        "indices": np.array([0]),
        "indptr": np.array([0, 1, 1]),
        "shape": np.array(shape, dtype=object),
    } | parts
    whole["shape"] = np.array(shape, dtype=np.uint64 if max(shape) >= 2**63 else np.int64)
    return npz(**{f"features.{name}": part for name, part in whole.items()})


def claim(name: str, shape: tuple[int, ...], suffix: str, dtype: str = "<f4") -> Case:
    """An npy, or an npz with one, whose header claims an array that is not there."""

    def write(folder: Path) -> Callable[[], Any]:
        header = io.BytesIO()
        np.lib.format.write_array_header_1_0(
            header, {"descr": dtype, "fortran_order": False, "shape": shape}
        )
        path = folder / f"claim.{suffix}"
        path.write_bytes(header.getvalue())
        if suffix == "npz":
            with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
                archive.writestr(f"{name}.npy", header.getvalue())
        return lambda: read_graph(path) if name == "edges" else Embeddings.read(path)

    return write


def members(*names: str, comment: bytes = b"") -> Case:
    """A zip with these members, each the edges of a graph."""

    def write(folder: Path) -> Callable[[], Any]:
        content = io.BytesIO()
        np.save(content, EDGE)
        path = folder / "graph.npz"
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, content.getvalue())
            archive.comment = comment
        return lambda: read_graph(path)

    return write


def text(name: str, content: str | bytes) -> Case:
    """A text file that is read by its extension; a ``.kv`` as vectors."""

    def write(folder: Path) -> Callable[[], Any]:
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return lambda: Embeddings.read(path) if path.suffix == ".kv" else read_graph(path)

    return write


def config(content: str) -> Case:
    """A run folder with another config.json."""

    def write(folder: Path) -> Callable[[], Any]:
        (folder / runs.CONFIG).write_text(content)
        (folder / runs.MODEL).write_bytes(b"")
        return lambda: DGI.load(folder)

    return write


def columns(**values: Any) -> Case:
    """A parquet file of nodes beside one edge, and of vectors."""

    def write(folder: Path) -> Callable[[], Any]:
        (folder / "edges.csv").write_text("source,target\na,b\n")
        parquet.write_table(pa.table(values), folder / "nodes.parquet")
        if "vector" in values:
            return lambda: Embeddings.read(folder / "nodes.parquet")
        return lambda: read_graph(folder)

    return write


def pickled(content: bytes) -> Case:
    """A file of Planetoid."""

    def write(folder: Path) -> Callable[[], Any]:
        path = folder / "ind.cora.y"
        path.write_bytes(content)
        return lambda: planetoid.unpickle(path)

    return write


_LAUGHS = "".join(f'<!ENTITY l{k} "{f"&l{k - 1};" * 10}">' for k in range(1, 12))
_GRAPHML = f'<?xml version="1.0"?><!DOCTYPE g [<!ENTITY l0 "ha">{_LAUGHS}]><graphml><graph id="&l11;"/></graphml>'
_TWO = ["a", "b"]

CASES: dict[str, Case] = {
    "ids as row numbers": npz(edges=[[0], [200_000_000]]),
    "a row of 2e9": npz(edges=[[0], [2_000_000_000]]),
    "a row of 2**62": npz(edges=[[0], [2**62]]),
    "a row of 2**64 - 1": npz(edges=np.array([[0], [2**64 - 1]], dtype=np.uint64)),
    "2**40 columns": csr([2, 2**40]),
    "2**40 rows": csr([2**40, 2]),
    "2**63 columns": csr([2, 2**63]),
    "a negative shape": csr([-2, 3]),
    "indices beyond the shape": csr([2, 3], indices=np.array([2**31])),
    "200 million columns of zeros": npz(features=np.broadcast_to(np.int8(0), (3, 200_000_000))),
    "objects": npz(ids=np.array([{}, []], dtype=object)),
    "edges of an overflowing size": claim("edges", (2**62, 2**62), "npz", "<i8"),
    "vectors that are not there, npy": claim("vectors", (2**40, 512), "npy"),
    "objects in an npy": claim("vectors", (1, 1), "npy", "|O"),
    "a member outside the folder": members("../../edges.npy"),
    "a member twice": members("edges.npy", "edges.npy"),
    "a folder as a member": members("edges.npy/"),
    "a comment": members("edges.npy", comment=b"x" * 60_000),
    "a million laughs": text("graph.graphml", _GRAPHML),
    "deep XML": text("graph.graphml", "<a>" * 50_000),
    "a cell of 50 MB": text("edges.csv", "source,target\n" + "a" * 50_000_000 + ",b\n"),
    "many columns": text("edges.csv", ",".join(f"c{k}" for k in range(50_000)) + "\n"),
    "10**15 vectors": text("vectors.kv", "1000000000000000 3\na 1 2 3\n"),
    "10**15 dimensions": text("vectors.kv", "1 1000000000000000\na 1 2 3\n"),
    "UTF-16 without a mark": text("edges.csv", "source,target\na,b\n".encode("utf-16-le")),
    "deep JSON": config("[" * 1_000_000),
    "deep objects": config('{"a":' * 500_000),
    "a number of a million digits": config('{"format": ' + "9" * 1_000_000 + "}"),
    "nested columns": columns(id=_TWO, x=pa.array([[1, 2], [3]])),
    "a column of structures": columns(id=_TWO, x=pa.array([{"y": 1}, {"y": 2}])),
    "vectors of no width": columns(id=_TWO, vector=pa.array([[], []], pa.list_(pa.float32(), 0))),
    "vectors of text": columns(
        id=_TWO, vector=pa.FixedSizeListArray.from_arrays(pa.array(_TWO), 1)
    ),
    "a call": pickled(b"cos\nsystem\n(S'exit'\ntR."),
    "a call by another name": pickled(b"cbuiltins\neval\n(S'1'\ntR."),
    "deep pickle": pickled(b"(" * 100_000 + b"t" * 100_000 + b"."),
}


def examine(name: str, folder: Path) -> Iterator[str]:
    """Write and read one crafted file; the faults."""
    try:
        read = CASES[name](folder)
    except ValueError:  # pyarrow or numpy does not even write it
        return
    began = time.monotonic()
    tracemalloc.start()
    try:
        read()
    except InputError:
        pass
    except Exception as error:
        yield f"{name}: {type(error).__name__}: {str(error)[:200]}"
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    if peak > MOST_BYTES:
        yield f"{name}: took {peak:,} bytes"
    if (seconds := time.monotonic() - began) > MOST_SECONDS:
        yield f"{name}: took {seconds:.1f} s"


def _one(name: str, folder: Path) -> None:
    (folder / "faults.json").write_text(json.dumps(list(examine(name, folder))))


def campaign(folder: Path) -> Trials:
    """Every crafted file, each in a process of its own."""
    for number, name in enumerate(CASES):
        place = folder / f"crafted-{number}"
        place.mkdir()
        if code := run(_one, name, place):
            yield 1, [f"{name}: the process ended with {code}"]
        else:
            yield 1, json.loads((place / "faults.json").read_text())
