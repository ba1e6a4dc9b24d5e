"""Graphs whose nodes and edges have attributes, as NetworkX and GraphML hold them."""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from infomax.arrays.cells import UnreadableError
from infomax.arrays.encoding import EXPECTED, Encoding
from infomax.arrays.moments import too_fine
from infomax.arrays.sparsity import stack
from infomax.arrays.survey import Survey
from infomax.errors import InputError, meant, shorten
from infomax.io.blocks import NotNumbersError, number_groups
from infomax.io.columns import GROUPS, LABEL, NAME, SPLIT, Columns, warn_unused
from infomax.io.learning import learnt
from infomax.io.record import Record


class Attributed(NamedTuple):
    """Nodes, and edges by the nodes at their ends, with attributes, as NetworkX has them."""

    nodes: list[tuple[Any, dict[Any, Any]]]
    links: list[tuple[Any, Any, dict[Any, Any]]]
    directed: bool
    unset: Sequence[str] = ()
    """Attributes that are 0 at nodes without them."""

    @classmethod
    def of(cls, graph: Any) -> Attributed:
        """The nodes and edges of a graph of NetworkX."""
        if not hasattr(graph, "is_directed"):
            raise InputError("graph", "a NetworkX graph", type(graph).__name__)
        return cls(list(graph.nodes(data=True)), list(graph.edges(data=True)), graph.is_directed())


def from_attributes(graph: Attributed, chosen: Columns, directed: bool | None, where: str = "graph") -> Record:
    """What `Graph.from_networkx` returns.

    Attributes of the kinds that a person said, and those that are no numbers, are encoded as columns are.
    """
    (nodes, links, has_directions, unset), name = graph, chosen.name
    if directed and not has_directions:
        links = [*links, *((v, u, attributes) for u, v, attributes in links if u != v)]
    names = list(dict.fromkeys([*unset, *(one for _, attributes in nodes for one in attributes)]))
    for one in chosen.ignore:
        _refuse_missing("attribute to ignore", one, names)
        names.remove(one)
    marked = [one for one in names if isinstance(one, str) and one.startswith(LABEL)]
    wanted = dict.fromkeys(chosen.labels)
    for one in wanted:
        if f"{LABEL}{one}" not in names:
            _refuse_missing("label attribute", one, names)
    if name is not None:
        _refuse_missing("name attribute", name, names)
    named = NAME if name is None and NAME in names else name
    splits = [one for one in names if isinstance(one, str) and one.startswith(SPLIT)]
    grouped = GROUPS in names and GROUPS not in wanted
    others = {*wanted, *marked, *splits, named, *([GROUPS] if grouped else [])}
    left = [one for one in names if one not in others]
    features = (
        left if chosen.learns else [one for one in chosen.features or () if one in left]
    )  # as in an earlier graph
    columns = {one: [attributes.get(one) for _, attributes in nodes] for one in names if one in others}
    position = {node: row for row, (node, _) in enumerate(nodes)}
    used = dict.fromkeys(one for *_, attributes in links for one in attributes)
    warn_unused(where, [one for one in used if one != "weight"], "edge attributes")
    own = [one for one in wanted if one in names]
    found, encoding, called = _encoded(nodes, features, {*unset}, chosen, [*own, *marked], named)
    if called != named:
        named, columns = called, columns | {called: [attributes.get(called) or "" for _, attributes in nodes]}
    record = Record.from_arrays(
        np.array([[position[u], position[v]] for u, v, _ in links], dtype=np.int64).reshape(-1, 2).T,
        features=chosen.made if found is None else found,
        weight=_weights(links),
        num_nodes=len(nodes),
        directed=has_directions if directed is None else directed,
        ids=np.fromiter(position, dtype=object),
        feature_names=None if found is None else features if encoding is None else encoding.feature_names,
        labels={
            one.removeprefix(LABEL) if one in marked else one: np.fromiter(columns[one], dtype=object)
            for one in (*own, *marked)
        },
        node_names=None if named is None else np.fromiter(columns[named], dtype=object),
        groups=number_groups(list(map(str, columns[GROUPS]))) if grouped else None,
        splits={one.removeprefix(SPLIT): [value or False for value in columns[one]] for one in splits},
    )
    return replace(record, encoding=encoding)


def _encoded(
    nodes: list[tuple[Any, dict[Any, Any]]],
    names: list[Any],
    unset: set[str],
    chosen: Columns,
    labels: Sequence[str],
    name: str | None,
) -> tuple[Any, Encoding | None, str | None]:
    """The features ``[N, F]`` of attributes, how they were made if not of numbers, and the attribute of node names."""
    try:
        keys = chosen.keys(names) if chosen.learns else []
        if chosen.encoding is None and not (names and chosen.kinds) and not keys:
            return _features(nodes, names, unset) if names else None, None, name
    except NotNumbersError:
        if find_spec("pyarrow") is None or not chosen.learns:
            raise
    table = {
        str(one): _arrow(str(one), [attributes.get(one, 0 if one in unset else None) for _, attributes in nodes])
        for one in names
    }
    if chosen.encoding is not None:
        try:
            return stack([chosen.encoding.transform(table)]), chosen.encoding, name
        except UnreadableError as error:
            where = f"node {shorten(nodes[error.row][0])}, attribute {shorten(error.column)}"
            raise InputError(where, error.expected, error.found) from None
    survey, seen = Survey(list(table), chosen.kinds, labels, keys), f"{SPLIT}seen"
    rows = [row for row, (_, attributes) in enumerate(nodes) if attributes.get(seen)] or [*range(len(nodes))]
    survey.add(
        {one: values.take(rows) for one, values in table.items()},
        lambda row, one: f"node {shorten(nodes[rows[row]][0])}, attribute {shorten(one)}",
    )
    columns = learnt(Columns(name=name), survey, Path("attributes"), list(table))
    encoding = columns.encoding
    return encoding and stack([encoding.transform(table)]), encoding, columns.name


def _arrow(name: str, values: list[Any]) -> Any:
    """An attribute as a pyarrow array: values of several types as text; objects without a text are refused."""
    import pyarrow as pa

    values = [value.tolist() if hasattr(value, "detach") else value for value in values]  # torch's are no text
    try:
        return pa.array(values)
    except (pa.ArrowException, OverflowError):
        for value in values:
            if " object at 0x" in str(value):  # its text is a place in memory
                found, remedy = f"an object of type {type(value).__name__}", "Name it in ignore."
                raise InputError(f"attribute {shorten(name)}", EXPECTED["type"], found, remedy) from None
        return pa.array([None if value is None else str(value) for value in values], pa.large_string())


def _refuse_missing(what: str, name: Any, names: Sequence[Any]) -> None:
    if name not in names:
        expected = f"one of {', '.join(map(shorten, names))}" if names else "nodes with attributes"
        remedy = meant(name, map(str, names))
        raise InputError(f"{what} {shorten(name)}", expected, "no node with that attribute", remedy)


def _features(nodes: list[tuple[Any, dict[Any, Any]]], names: list[Any], unset: set[str]) -> Any:
    """Features ``[N, F]`` of attributes that are numbers, sparse where most of them are zero."""
    place = {name: column for column, name in enumerate(names)}
    rows, columns, values = array("q"), array("q"), array("d")
    needed = [name for name in names if name not in unset]
    for row, (node, attributes) in enumerate(nodes):
        there = [name for name in attributes if name in place]
        numbers = [attributes[name] for name in there]
        bad = _not_number(numbers)
        lack = next((name for name in needed if name not in attributes), None)
        if bad is not None or lack is not None:
            name = there[bad] if bad is not None else lack
            found = "none" if attributes.get(name) is None else shorten(attributes[name])
            where = f"node {shorten(node)}, attribute {shorten(name)}"
            raise NotNumbersError(where, "a finite number", found, "Name the attribute in labels, or remove it.")
        rows.extend([row] * len(there))
        columns.extend(place[name] for name in there)
        values.extend(map(float, numbers))
    ends = np.array(rows), np.array(columns)
    found = sparse.csr_array((np.array(values), ends), shape=(len(nodes), len(names)))
    if too_fine(found.min(axis=0).toarray().ravel(), found.max(axis=0).toarray().ravel()).any():
        raise NotNumbersError("attributes", "numbers that float32 tells apart", "others")
    with np.errstate(over="ignore"):
        return stack([found.astype(np.float32)])


def _weights(links: list[tuple[Any, Any, dict[Any, Any]]]) -> list[float] | None:
    """The weights of edges, 1 where one has none; None where none has one."""
    weights: list[Any] = [attributes.get("weight") for *_, attributes in links]
    if all(weight is None for weight in weights):
        return None
    weights = [1.0 if weight is None else weight for weight in weights]
    if (bad := _not_number(weights, least=0)) is not None:
        where = f"weight of the edge {shorten(links[bad][0])} -> {shorten(links[bad][1])}"
        raise InputError(where, "a finite number of zero or more", shorten(weights[bad]))
    return list(map(float, weights))


def _not_number(values: list[Any], least: float = -math.inf) -> int | None:
    """The position of the first value that is no finite number, or one below ``least``."""
    for place, value in enumerate(values):
        try:
            if not math.isfinite(number := float(value)) or number < least:
                return place
        except (TypeError, ValueError):
            return place
    return None
