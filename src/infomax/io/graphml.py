"""GraphML, read and written element by element, in a fraction of the memory that the document takes as a tree."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from scipy import sparse

from infomax.errors import InputError, InputWarning
from infomax.io.atomic import replacing
from infomax.io.columns import Columns
from infomax.io.interchange import SPLIT, from_networkx
from infomax.io.record import Record
from infomax.io.rows import edge_columns, flat_annotations, node_rows, refuse_too_many
from infomax.progress import Progress, followed

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


def read_graphml(path: Path, columns: Columns, directed: bool | None) -> Record:
    """The graph of a GraphML file, as `Graph.from_networkx` makes it, with the attributes that the columns name."""
    labels, features = columns.labels, columns.features
    try:
        graph = _Plain.read(path) or _read_unusual(path)
        unset = graph.fill(labels) if isinstance(graph, _Plain) else []
        names = {name for _, values in graph.nodes(data=True) for name in values} | {*unset}
        name = columns.name_among(names)
        kept = {*(features or ()), *labels, name}
        unwanted = (names - kept if features is not None else set()) | names.intersection(columns.ignore)
        if directed is None and graph.is_directed():
            message = f"{path}: edges are directed, as the file says (edgedefault). To change that: --undirected "
            warnings.warn(message + "(in Python: directed=False).", InputWarning, stacklevel=2)
        return from_networkx(
            graph, labels, directed, unwanted, name, unset, str(path), kinds=columns.kinds, made=columns.made
        )
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
        self.defaults: dict[str, dict[str, Any]] = {"node": {}, "edge": {}}
        self.open = [""]  # the elements that are being read, from the outermost
        self.values: dict[str, Any] = {}  # of the node or the edge that is being read
        self.key, self.owner, self.text = "", "", ""

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
        if tag in ("data", "default"):
            self.key, self.text = attributes.get("key", self.key), ""
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
            self.key, self.owner = attributes["id"], attributes.get("for", "all")
            self.keys[self.key] = attributes["attr.name"], _TYPES[attributes["attr.type"]]

    def _characters(self, text: str) -> None:
        self.text += text

    def _end(self, name: str) -> None:
        tag = self.open.pop()
        if tag == "default" or (tag == "data" and self.open[-1] != "graph"):
            name, convert = self.keys[self.key]
            value = convert(self.text) if self.text else ""
            for values in [self.values] if tag == "data" else self._defaults():
                values[name] = value

    def _defaults(self) -> list[dict[str, Any]]:
        """The defaults that a key belongs to."""
        return [values for owner, values in self.defaults.items() if self.owner in (owner, "all")]

    def fill(self, labels: Iterable[str]) -> list[str]:
        """Give all nodes and edges the defaults of the file, but for zeros of features: the names of these."""
        zeros = [name for name, value in self.defaults["node"].items() if value == 0 and name not in labels]
        annotations = [name for name in self.defaults["node"] if name not in zeros]
        for _, values in self.nodes(data=True) if annotations else ():
            for name in annotations:
                values.setdefault(name, self.defaults["node"][name])
        for *_, values in self.links if self.defaults["edge"] else ():
            values.update(self.defaults["edge"] | values)
        return zeros

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

    def edges(self, data: bool) -> Iterable[tuple[str, str, dict[str, Any]]]:
        """The ends of every edge, and its attributes."""
        return self.links


def write_graphml(graph: Record, path: Path, progress: Progress) -> None:
    """Write GraphML: features are attributes of type double, splits are booleans; of sparse features only non-zeros."""
    refuse_too_many(graph, str(path), "graphml")
    features, annotations, edges = graph.feature_names, flat_annotations(graph), edge_columns(graph)
    zero = "<default>0</default>" if sparse.issparse(graph.features) else ""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="") as file:
        file.write('<?xml version="1.0" encoding="utf-8"?>\n<graphml xmlns="http://graphml.graphdrawing.org/xmlns">\n')
        for key, name in enumerate((*features, *annotations)):
            kind = "double" if key < len(features) else "boolean" if name.startswith(SPLIT) else "string"
            inside = zero if key < len(features) else ""
            file.write(f'<key id="d{key}" for="node" attr.name={_attribute(name)} attr.type="{kind}">{inside}</key>\n')
        if "weight" in edges:
            file.write('<key id="weight" for="edge" attr.name="weight" attr.type="double"/>\n')
        file.write(f'<graph edgedefault="{"directed" if graph.directed else "undirected"}">\n')
        places = range(len(features), len(features) + len(annotations))
        for identifier, at, words, cells in followed(node_rows(graph), progress, "nodes", graph.num_nodes):
            content = zip((*at, *places), (*words, *(escape(cell, {"\r": "&#13;"}) for cell in cells)), strict=True)
            inside = "".join(f'<data key="d{key}">{word}</data>' for key, word in content)
            file.write(f"<node id={_attribute(identifier)}>{inside}</node>\n")
        for source, target, *weight in zip(*(column.tolist() for column in edges.values()), strict=True):
            inside = "".join(f'<data key="weight">{value}</data>' for value in weight)
            ends = f"source={_attribute(str(source))} target={_attribute(str(target))}"
            file.write(f"<edge {ends}>{inside}</edge>\n")
        file.write("</graph>\n</graphml>\n")


def _attribute(word: str) -> str:
    return quoteattr(word, {"\n": "&#10;", "\r": "&#13;", "\t": "&#9;"})
