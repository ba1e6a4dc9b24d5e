"""GraphML, read element by element, in a fraction of the memory that the whole document takes as a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from xml.parsers import expat

from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.io.columns import Columns

_SPACE = "http://graphml.graphdrawing.org/xmlns "
_INSIDE = {
    "": {"graphml"},
    "graphml": {"key", "graph", "desc"},
    "key": {"default", "desc"},
    "graph": {"node", "edge", "data", "desc"},
    "node": {"data", "desc"},
    "edge": {"data", "desc"},
    "data": set(),
    "default": set(),
    "desc": set(),
}
"""Which elements a plain file has inside which."""
_TAGS = {_SPACE + tag: tag for tag in _INSIDE}
_TRUTH = {"true": True, "1": True, "false": False, "0": False}
_TYPES: dict[str | None, Callable[[str], Any]] = {
    "boolean": lambda text: _TRUTH[text.lower()],
    "int": int,
    "long": int,
    "float": float,
    "double": float,
    "string": str,
}


def read_graphml(path: Path, columns: Columns, directed: bool) -> Graph:
    """The graph of a GraphML file, as `Graph.from_networkx` makes it, with the attributes that the columns name."""
    labels, features = columns.labels, columns.features
    try:
        graph = _Plain.read(path) or _read_unusual(path)
        for _, values in graph.nodes(data=True):
            unwanted = values.keys() - {*features, *labels} if features is not None else set()
            for name in unwanted | values.keys() & set(columns.ignore):
                del values[name]
        return Graph.from_networkx(graph, labels=labels, directed=directed)
    except InputError as error:
        raise InputError(f"{path}, {error.where}", error.expected, error.found, error.remedy) from error
    except (SyntaxError, OSError, LookupError, TypeError, ValueError) as error:
        # The XML parser raises SyntaxError; networkx raises the others for odd attributes.
        raise InputError(str(path), "a GraphML file", str(error) or type(error).__name__) from error


def _read_unusual(path: Path) -> Any:
    """As NetworkX reads a file, or says what is wrong with it."""
    import networkx

    try:
        return networkx.read_graphml(path)
    except networkx.NetworkXException as error:
        raise ValueError(str(error)) from error


class _Plain:
    """The nodes and edges of a plain file, with what `Graph.from_networkx` asks of a graph of NetworkX."""

    def __init__(self) -> None:
        self.directed, self.default = False, ""  # the default is an edge's "directed", once the graph has begun
        self.attributes: dict[str, dict[str, Any]] = {}
        self.links: list[tuple[str, str, dict[str, Any]]] = []
        self.keys: dict[str, tuple[str, Callable[[str], Any]]] = {}
        self.open = [""]  # the elements that are being read, from the outermost
        self.values: dict[str, Any] = {}  # of the node or the edge that is being read
        self.key, self.text = "", ""

    @classmethod
    def read(cls, path: Path) -> _Plain | None:
        """The graph of a file; None where it is unusual or damaged, or where there is none."""
        graph = cls()
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = graph._start, graph._end
        parser.CharacterDataHandler = graph._characters
        try:
            with path.open("rb") as file:
                parser.ParseFile(file)
        except (expat.ExpatError, OSError, LookupError, ValueError):
            return None
        return graph if graph.default else None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = _TAGS[name]
        if tag not in _INSIDE[self.open[-1]]:
            raise ValueError("not a plain file: it has ports, nested graphs or extensions")
        self.open.append(tag)
        if tag == "data":
            self.key, self.text = attributes["key"], ""
        elif tag == "node":
            self.values = self.attributes.setdefault(attributes["id"], {})
        elif tag == "edge":
            if attributes.get("directed", self.default) != self.default:
                raise ValueError("not a plain file: some edges are directed, others are not")
            self.values = {}
            self.links.append((attributes["source"], attributes["target"], self.values))
        elif tag == "graph":
            if self.default:
                raise ValueError("not a plain file: it has several graphs")
            self.directed = attributes.get("edgedefault") == "directed"
            self.default = str(self.directed).lower()
        elif tag == "key":
            self.keys[attributes["id"]] = attributes["attr.name"], _TYPES[attributes["attr.type"]]

    def _characters(self, text: str) -> None:
        self.text += text

    def _end(self, name: str) -> None:
        if self.open.pop() == "data" and self.open[-1] != "graph":
            name, convert = self.keys[self.key]
            self.values[name] = convert(self.text) if self.text else ""

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self.directed

    def to_directed(self, as_view: bool) -> _Plain:
        """The graph with an undirected edge once in each direction."""
        both = _Plain()
        both.directed, both.attributes = True, self.attributes
        back = () if self.directed else ((v, u, values) for u, v, values in self.links if u != v)
        both.links = [*self.links, *back]
        return both

    def nodes(self, data: bool) -> Iterable[tuple[str, dict[str, Any]]]:
        """Every node with its attributes; the ends of edges are nodes, too."""
        for end in (end for link in self.links for end in link[:2]):
            self.attributes.setdefault(end, {})
        return self.attributes.items()

    def edges(self, data: str) -> Iterable[tuple[str, str, Any]]:
        """The ends of every edge, and one of its attributes."""
        return ((source, target, values.get(data)) for source, target, values in self.links)
