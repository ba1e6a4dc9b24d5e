"""Deep Graph Infomax: learn one vector per node of a graph, without labels.

>>> from infomax import DGI, read_graph
>>> graph = read_graph("edges.csv", "nodes.csv")
>>> embeddings = DGI(dim=512, seed=0).fit(graph).transform(graph)
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from infomax.version import __version__ as __version__

if TYPE_CHECKING:
    from infomax.datasets import load_dataset as load_dataset
    from infomax.embeddings import Embeddings as Embeddings
    from infomax.errors import InputError as InputError
    from infomax.estimator import DGI as DGI
    from infomax.graphs.graph import Graph as Graph
    from infomax.graphs.reading import read_database as read_database
    from infomax.graphs.reading import read_graph as read_graph

# Imported when first used, so that `infomax --help` does not wait for torch.
_HOMES = {
    "DGI": "infomax.estimator",
    "Embeddings": "infomax.embeddings",
    "Graph": "infomax.graphs.graph",
    "InputError": "infomax.errors",
    "load_dataset": "infomax.datasets",
    "read_database": "infomax.graphs.reading",
    "read_graph": "infomax.graphs.reading",
}
__all__ = [
    "DGI",
    "Embeddings",
    "Graph",
    "InputError",
    "load_dataset",
    "read_database",
    "read_graph",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'infomax' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
