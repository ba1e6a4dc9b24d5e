"""What a user types for each method of `benchmarks.compared`: edges and features in, one vector per node out.

    python -m benchmarks.compared_methods METHOD ARRAYS.npz VECTORS.npy

This file runs in an environment of the peers, without infomax, so it imports nothing at the top but NumPy and SciPy. A
method is a function ``(edges [2, E], features CSR [N, F]) -> [N, d]``; edges are undirected, each is there once. Its
body is what a user writes, and is what is counted as such. Settings are those of each library's documentation; widths
that have no usable default are 128. All run on one thread.
"""

from __future__ import annotations

import inspect
import json
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

Method = Callable[[Any, Any], Any]


def svd(edges, features):
    """Singular vectors of the features alone, no edges: scikit-learn's TruncatedSVD."""
    from sklearn.decomposition import TruncatedSVD

    return TruncatedSVD(128, random_state=0).fit_transform(features)


def sgc(edges, features):
    """Features averaged over two hops, as SGC feeds its regression (Wu et al., 2019); nothing is
    trained."""
    n = features.shape[0]
    joined = sparse.coo_array((np.ones(edges.shape[1], np.float32), edges), shape=(n, n)).tocsr()
    joined = joined + joined.T + sparse.eye_array(n, dtype=np.float32, format="csr")
    scale = sparse.diags_array(1 / np.sqrt(joined.sum(axis=0)))
    propagation = scale @ joined @ scale
    return (propagation @ (propagation @ features)).toarray()


def spectral(edges, features):
    """scikit-network's Spectral, 128 wide: edges alone."""
    from sknetwork.data import from_edge_list
    from sknetwork.embedding import Spectral

    adjacency = from_edge_list(edges.T, directed=False, shape=2 * features.shape[:1])
    return Spectral(128).fit_transform(adjacency)


def gsvd(edges, features):
    """scikit-network's GSVD, 128 wide: edges alone."""
    from sknetwork.data import from_edge_list
    from sknetwork.embedding import GSVD

    adjacency = from_edge_list(edges.T, directed=False, shape=2 * features.shape[:1])
    return GSVD(128).fit_transform(adjacency)


def random_projection(edges, features):
    """scikit-network's RandomProjection, which is FastRP's idea, 128 wide: edges alone."""
    from sknetwork.data import from_edge_list
    from sknetwork.embedding import RandomProjection

    adjacency = from_edge_list(edges.T, directed=False, shape=2 * features.shape[:1])
    return RandomProjection(128, random_state=0).fit_transform(adjacency)


def pycleora(edges, features):
    """pycleora as in its quick start: 256 wide, 40 iterations, edges alone. Nodes without edges get
    zeros."""
    from pycleora import SparseMatrix, embed

    lines = (f"{source} {target}" for source, target in edges.T.tolist())
    graph = SparseMatrix.from_iterator(lines, "complex::reflexive::node")
    vectors = np.zeros((features.shape[0], 256), np.float32)
    vectors[[int(node) for node in graph.entity_ids]] = embed(graph)
    return vectors


def pycleora_features(edges, features):
    """pycleora as its FAQ says for features: 256 singular vectors to begin with, and few iterations
    (4, not 40)."""
    from pycleora import SparseMatrix, embed
    from sklearn.decomposition import TruncatedSVD

    lines = (f"{source} {target}" for source, target in edges.T.tolist())
    graph = SparseMatrix.from_iterator(lines, "complex::reflexive::node")
    rows = [int(node) for node in graph.entity_ids]
    vectors = TruncatedSVD(256, random_state=0).fit_transform(features)
    vectors[rows] = embed(graph, initial_embeddings=vectors[rows], num_iterations=4)
    return vectors


def pecanpy(edges, features):
    """PecanPy's node2vec with its defaults: SparseOTF, p = q = 1, 128 wide, 10 walks of 80 steps,
    edges alone."""
    from pecanpy.pecanpy import SparseOTF

    np.savetxt("edges.edg", edges.T, "%d", delimiter="\t")
    graph = SparseOTF(random_state=0)
    graph.read_edg("edges.edg", weighted=False, directed=False)
    vectors = np.zeros((features.shape[0], 128), np.float32)
    vectors[[int(node) for node in graph.nodes]] = graph.embed()
    return vectors


def pecanpy_first_order(edges, features):
    """PecanPy in the mode that it documents for p = q = 1 and no weights: FirstOrderUnweighted,
    else the same."""
    from pecanpy.pecanpy import FirstOrderUnweighted

    np.savetxt("edges.edg", edges.T, "%d", delimiter="\t")
    graph = FirstOrderUnweighted(1, 1, random_state=0)
    graph.read_edg("edges.edg", weighted=False, directed=False)
    vectors = np.zeros((features.shape[0], 128), np.float32)
    vectors[[int(node) for node in graph.nodes]] = graph.embed()
    return vectors


def pyg_dgi(edges, features):
    """Deep Graph Infomax as PyG's example trains it: GCN, 512 wide, 300 epochs, learning rate
    0.001."""
    import torch
    from torch_geometric.nn import DeepGraphInfomax, GCNConv

    class Encoder(torch.nn.Module):
        def __init__(self, width):
            super().__init__()
            self.conv = GCNConv(width, 512, cached=True)
            self.activation = torch.nn.PReLU(512)

        def forward(self, x, edge_index):
            return self.activation(self.conv(x, edge_index))

    def corruption(x, edge_index):
        return x[torch.randperm(len(x))], edge_index

    torch.manual_seed(0)
    x = torch.from_numpy(features.toarray())
    edge_index = torch.from_numpy(np.concatenate([edges, edges[::-1]], axis=1))
    encoder, summary = Encoder(x.shape[1]), lambda h, *_: h.mean(dim=0).sigmoid()
    model = DeepGraphInfomax(512, encoder, summary, corruption)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.001)
    for _ in range(300):
        optimiser.zero_grad()
        loss = model.loss(*model(x, edge_index))
        loss.backward()
        optimiser.step()
    with torch.no_grad():
        return model(x, edge_index)[0].numpy()


def infomax(edges, features):
    """infomax with its defaults: the encoder, own features, the same pooled, and positions, side by
    side."""
    from infomax import DGI, Graph

    graph = Graph.from_arrays(edges, features)
    return DGI(seed=0).fit_transform(graph).vectors


def infomax_paper(edges, features):
    """infomax with `vectors="paper"`: the paper's encoder alone."""
    from infomax import DGI, Graph

    graph = Graph.from_arrays(edges, features)
    return DGI(vectors="paper", seed=0).fit_transform(graph).vectors


def infomax_types(name, _):
    """infomax with its defaults on a graph of several types, by the name of the data set."""
    from infomax import DGI, load_dataset

    graph = load_dataset(name)
    return DGI(seed=0).fit_transform(graph).vectors


METHODS: dict[str, Method] = {
    "svd": svd,
    "sgc": sgc,
    "random-projection": random_projection,
    "spectral": spectral,
    "gsvd": gsvd,
    "pycleora": pycleora,
    "pycleora-features": pycleora_features,
    "pecanpy": pecanpy,
    "pecanpy-first-order": pecanpy_first_order,
    "pyg-dgi": pyg_dgi,
    "infomax-paper": infomax_paper,
    "infomax": infomax,
}
OURS = ("infomax", "infomax-paper")
USES_EDGES_ALONE = (
    "random-projection",
    "spectral",
    "gsvd",
    "pycleora",
    "pecanpy",
    "pecanpy-first-order",
)


def lines(method: str) -> int:
    """Lines of a method's body, without its docstring and empty ones."""
    source = inspect.getsource(METHODS[method]).splitlines()
    docstring_lines = (METHODS[method].__doc__ or "").splitlines()
    # One more for the signature.
    return sum(bool(line.strip()) for line in source) - len(docstring_lines) - 1


def peak_mb() -> float:
    """The most memory that this process has held, in MB."""
    status = Path("/proc/self/status")
    if status.exists():
        return (
            int(
                next(line.split()[1] for line in status.read_text().splitlines() if "VmHWM" in line)
            )
            / 1024
        )
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # bytes on macOS


def main(method: str, source: str, out: str) -> None:
    """Run one method on the arrays of a file; prints the seconds and the memory as JSON."""
    began, cpu = time.perf_counter(), time.process_time()
    arrays = np.load(source)
    if "name" in arrays:
        vectors = infomax_types(str(arrays["name"]), None)
    else:
        parts = (arrays[key] for key in ("data", "indices", "indptr"))
        features = sparse.csr_array(tuple(parts), shape=tuple(arrays["shape"]))
        vectors = METHODS[method](arrays["edges"], features)
    np.save(out, np.asarray(vectors, np.float32))
    spent = {
        "wall_s": time.perf_counter() - began,
        "method_cpu_s": time.process_time() - cpu,
        "peak_mb": peak_mb(),
    }
    print(json.dumps(spent))


if __name__ == "__main__":
    main(*sys.argv[1:])
