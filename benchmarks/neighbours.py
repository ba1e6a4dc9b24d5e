"""CPU seconds to build an index, ms per query and seconds for all nodes, and the recall: ours, usearch and faiss."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.command import parser, report

Vectors: TypeAlias = NDArray[np.float32]
Search: TypeAlias = Callable[[NDArray[np.int64]], NDArray[np.int64]]
"""Gives rows ``[n, 11]`` or more for nodes ``[n]``, the nodes themselves perhaps among them."""

K, SAMPLE, TIMED = 10, 200, 2000
"""Neighbours; nodes whose exact neighbours are known; nodes that are searched to tell the time for
all."""
GROUPS, INNER = 1000, 32
COLUMNS = {
    "method": "{method}",
    "settings": "{settings}",
    "build CPU s": "{build_s:.1f}",
    "CPU ms per query": "{query_ms:.2f}",
    "all neighbours CPU s": "{all_s:.1f}",
    "recall@10": "{recall:.3f}",
}


def made(n: int, width: int, seed: int = 0) -> Vectors:
    """Vectors ``[n, width]`` like those of an encoder: 1,000 groups in 32 dimensions, mapped and
    bent."""
    draws = np.random.default_rng(seed)
    middles = draws.standard_normal((GROUPS, INNER), dtype=np.float32)
    outwards = draws.standard_normal((INNER, width), dtype=np.float32) / np.sqrt(
        INNER, dtype=np.float32
    )
    vectors = np.empty((n, width), np.float32)
    for first in range(0, n, 1 << 17):
        block = vectors[first : first + (1 << 17)]
        noise = draws.standard_normal((len(block), INNER), dtype=np.float32)
        bent = (middles[draws.integers(0, GROUPS, len(block))] + np.float32(0.5) * noise) @ outwards
        block[:] = np.where(bent > 0, bent, np.float32(0.25) * bent)
        block += np.float32(0.05) * draws.standard_normal(block.shape, dtype=np.float32)
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def main(arguments: Sequence[str] | None = None) -> None:
    """Build every index over the same vectors, and search in it with several settings."""
    options = parser(__doc__, peers=("infomax", "usearch", "faiss-ivf", "faiss-hnsw"))
    options.add_argument("--nodes", type=float, default=1e5)
    options.add_argument("--width", type=int, default=128)
    settings = options.parse_args(arguments)
    n = int(settings.nodes)
    units = made(n, settings.width)
    nodes = np.sort(np.random.default_rng(1).permutation(n)[:SAMPLE])
    cosine = units[nodes] @ units.T
    cosine[np.arange(len(nodes)), nodes] = -2
    least = np.partition(cosine, -K, axis=1)[:, -K]
    rows = []
    for peer, (told, build_s, search, all_s) in _results(settings.peers, units, settings.threads):
        began, drawn = time.process_time(), np.random.default_rng(2).integers(0, n, TIMED)
        for node in drawn[: TIMED if all_s is None else 0]:
            search(np.array([node]))
        query_ms = (time.process_time() - began) / TIMED * 1e3 if all_s is None else np.nan
        if all_s is None:
            began = time.process_time()
            search(np.arange(min(n, TIMED)))
            all_s = (time.process_time() - began) * n / min(n, TIMED)
        shares = []
        for at, found in enumerate(search(nodes)):
            near = found[found != nodes[at]][:K]
            shares.append(np.mean(cosine[at, near] >= least[at] - 1e-6))
        row = {
            "method": peer,
            "settings": told,
            "build_s": build_s,
            "query_ms": query_ms,
            "all_s": all_s,
            "recall": np.mean(shares),
        }
        print(" ".join(form.format(**row) for form in COLUMNS.values()), flush=True)
        rows.append(row)
    report(settings, f"{K} nearest neighbours of {n:,} vectors of {settings.width}", rows, COLUMNS)


Found: TypeAlias = Iterator[tuple[str, float, Search, float | None]]
"""Settings, CPU seconds to build, a search, and the CPU seconds for all nodes where they are
known."""


def _results(peers: Sequence[str], units: Vectors, threads: int) -> Iterator[tuple[str, Any]]:
    """What every peer has to show; one whose library is not installed is left out."""
    for peer in peers:
        try:
            yield from ((peer, found) for found in PEERS[peer](units, threads))
        except ImportError as reason:
            print(f"left out: {peer}: {reason}")


def kept_index(units: Vectors, threads: int) -> Found:
    """The index that ``infomax neighbours`` keeps; built with its measured recall."""
    import faiss

    from infomax.index import build

    faiss.omp_set_num_threads(threads)
    began = time.process_time()
    index, _ = build(units)
    built, told = time.process_time() - began, f"{index.nlist} lists, {index.nprobe} searched"
    yield told, built, lambda nodes: index.search(units[nodes], K + 1)[1], None


def usearch(units: Vectors, threads: int) -> Found:
    """A graph of nearest nodes (HNSW): connectivity, nodes in view when one is added, type; in view
    of a search."""
    from usearch.index import Index

    for connectivity, view, kind in (
        (16, 64, "f16"),
        (16, 32, "f16"),
        (12, 24, "f16"),
        (8, 24, "f16"),
    ):
        began = time.process_time()
        index = Index(
            ndim=units.shape[1],
            metric="cos",
            dtype=kind,
            connectivity=connectivity,
            expansion_add=view,
        )
        index.add(np.arange(len(units)), units, threads=threads)
        built = time.process_time() - began
        for searched in (32, 64, 256, 1024):
            index.expansion_search = searched

            def search(nodes: NDArray[np.int64], index: Any = index) -> NDArray[np.int64]:
                return np.asarray(index.search(units[nodes], K + 1, threads=threads).keys, np.int64)

            yield f"{connectivity}, {view}, {kind}; {searched}", built, search, None


def faiss_ivf(units: Vectors, threads: int) -> Found:
    """Inverted lists of k-means; as many lists as the groups have."""
    import faiss

    faiss.omp_set_num_threads(threads)
    began, width = time.process_time(), units.shape[1]
    lists = round(2 * len(units) ** 0.5)
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, lists, faiss.METRIC_INNER_PRODUCT)
    index.cp.niter, index.cp.max_points_per_centroid, index.cp.spherical = 6, 64, True
    index.train(units)
    index.add(units)
    built = time.process_time() - began
    for probes in (1, 2, 4, 8):
        index.nprobe = probes
        yield (
            f"{lists} lists, {probes} searched",
            built,
            lambda nodes: index.search(units[nodes], K + 1)[1],
            None,
        )


def faiss_hnsw(units: Vectors, threads: int) -> Found:
    """The same kind of index as usearch's."""
    import faiss

    faiss.omp_set_num_threads(threads)
    began = time.process_time()
    index = faiss.IndexHNSWFlat(units.shape[1], 12, faiss.METRIC_INNER_PRODUCT)
    index.hnsw.efConstruction = 24
    index.add(units)
    built = time.process_time() - began
    for searched in (32, 64):
        index.hnsw.efSearch = searched
        yield (
            f"12, 24, f32; {searched}",
            built,
            lambda nodes: index.search(units[nodes], K + 1)[1],
            None,
        )


PEERS: dict[str, Callable[[Vectors, int], Found]] = {
    "infomax": kept_index,
    "usearch": usearch,
    "faiss-ivf": faiss_ivf,
    "faiss-hnsw": faiss_hnsw,
}


if __name__ == "__main__":
    main()
