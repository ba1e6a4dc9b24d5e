"""GraphML, read and written element by element, in a fraction of the memory that the document takes as a tree."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.parsers import expat
from xml.sax.saxutils import escape, quoteattr

from scipy import sparse

from infomax.errors import InputError, warn
from infomax.io.atomic import replacing
from infomax.io.attributes import Attributed, from_attributes
from infomax.io.columns import SPLIT, Columns
from infomax.io.record import Record
from infomax.io.rows import edge_columns, flat_annotations, node_rows, refuse_too_many
from infomax.progress import Progress, followed, silent

PARSING = 40
"""Share of reading a file, in percent, after which its elements are parsed."""
_PIECE = 1 << 20
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


def read_graphml(path: Path, columns: Columns, directed: bool | None, progress: Progress = silent) -> Record:
    """The graph of a GraphML file, as `Graph.from_networkx` makes it, with the attributes that the columns name."""
    labels, features = columns.labels, columns.features
    try:
        graph = _Plain().read(path, labels, progress) or _read_unusual(path)
        names = {name for _, values in graph.nodes for name in values} | {*graph.unset}
        name = columns.name_among(names)
        kept = {*(features or ()), *labels, name}
        unwanted = (names - kept if features is not None else set()) | names.intersection(columns.ignore)
        if directed is None and graph.directed:
            message = f"{path}: edges are directed, as the file says (edgedefault). To change that: --undirected "
            warn(message + "(in Python: directed=False).")
        return from_attributes(graph, replace(columns, ignore=tuple(unwanted), name=name), directed, str(path))
    except InputError as error:
        raise InputError(f"{path}, {error.where}", error.expected, error.found, error.remedy) from error
    except (SyntaxError, OSError, LookupError, TypeError, ValueError) as error:
        # The XML parser raises SyntaxError; networkx raises the others for odd attributes.
        raise InputError(str(path), "a GraphML file", str(error) or type(error).__name__) from error


def _read_unusual(path: Path) -> Attributed:
    """As NetworkX reads a file, or says what is wrong with it."""
    import networkx

    try:
        return Attributed.of(networkx.read_graphml(path))
    except networkx.NetworkXException as error:
        raise ValueError(str(error)) from error


class _Plain:
    """What has been read of a plain file."""

    def __init__(self) -> None:
        self.directed = ""  # "true" or "false", once the graph has begun
        self.nodes: dict[str, dict[str, Any]] = {}
        self.links: list[tuple[str, str, dict[str, Any]]] = []
        self.keys: dict[str, tuple[str, Callable[[str], Any]]] = {}
        self.defaults: dict[str, dict[str, Any]] = {"node": {}, "edge": {}}
        self.open = [""]  # the elements that are being read, from the outermost
        self.values: dict[str, Any] = {}  # of the node or the edge that is being read
        self.key, self.owner, self.text = "", "", ""

    def read(self, path: Path, labels: Iterable[str], progress: Progress) -> Attributed | None:
        """The graph of a file; None where it is unusual or damaged, or where there is none.

        All nodes and edges get the defaults of the file, but for zeros of features, which are ``unset``.
        """
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        try:
            with path.open("rb") as file:
                while piece := file.read(_PIECE):
                    parser.Parse(piece)
                    progress(PARSING * file.tell() // path.stat().st_size, path.name, 100)
                parser.Parse(b"", True)
        except (expat.ExpatError, OSError, LookupError, ValueError):
            return None
        for end in (end for link in self.links for end in link[:2]):
            self.nodes.setdefault(end, {})
        of_nodes, of_edges = self.defaults.values()
        unset = {name: value for name, value in of_nodes.items() if value == 0 and name not in labels}
        others = {name: value for name, value in of_nodes.items() if name not in unset}
        for usual, owners in ((others, self.nodes.values()), (of_edges, (link[2] for link in self.links))):
            for values in owners if usual else ():
                values.update(usual | values)
        found = Attributed(list(self.nodes.items()), self.links, self.directed == "true", [*unset])
        return found if self.directed else None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        tag = _TAGS[name]
        if tag not in _INSIDE[self.open[-1]]:
            raise ValueError("not a plain file: it has ports, nested graphs or extensions")
        self.open.append(tag)
        if tag in ("data", "default"):
            self.key, self.text = attributes.get("key", self.key), ""
        elif tag == "node":
            self.values = self.nodes.setdefault(attributes["id"], {})
        elif tag == "edge":
            if attributes.get("directed", self.directed) != self.directed:
                raise ValueError("not a plain file: some edges are directed, others are not")
            self.values = {}
            self.links.append((attributes["source"], attributes["target"], self.values))
        elif tag == "graph":
            if self.directed:
                raise ValueError("not a plain file: it has several graphs")
            self.directed = str(attributes.get("edgedefault") == "directed").lower()
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
            if tag == "data":
                self.values[name] = value
                return
            for owner, values in self.defaults.items():
                values |= {name: value} if self.owner in (owner, "all") else {}


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
