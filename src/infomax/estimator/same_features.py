"""Refuse arguments that are no graphs, and graphs that a fitted model was not made for."""

from __future__ import annotations

from infomax.arrays.checks import check_feature_names
from infomax.errors import InputError, warn
from infomax.graphs.graph import Graph
from infomax.io.column_names import format_list


def check_graph(graph: object) -> None:
    """Raise InputError if the argument is not a Graph."""
    if not isinstance(graph, Graph):
        remedy = (
            "Make one: Graph.from_frames, from_arrays, from_scipy, from_networkx or from_pyg, "
            "or read_graph(path)."
        )
        raise InputError("graph", "a Graph", type(graph).__name__, remedy)


def check_same_features(graph: Graph, training_graph: Graph) -> None:
    """Refuse a graph with other node types, edges or features than the training graph.

    Where columns were encoded by the values of this graph instead of the training graph's, a
    warning says so.
    """
    _check_node_type(graph, training_graph)
    remedy = (
        "Read its tables like that graph's: like=model.graph_ (read_graph, from_frames), "
        "or prepare --like RUN."
    )
    _check_directions(graph, training_graph, remedy)

    columns_encoded_anew: list[str] = []
    for node_type, trained_nodes in training_graph.nodes.items():
        nodes = graph.target(node_type).nodes_in_view
        location = "features"
        if node_type != graph.node_type:
            location = f"features of nodes of type {node_type}"
        check_feature_names(location, nodes.feature_names, trained_nodes.feature_names, remedy)
        if nodes.encoding and trained_nodes.encoding:
            columns_encoded_anew += nodes.encoding.differing(trained_nodes.encoding)

    if columns_encoded_anew:
        warn(
            f"features: the columns {format_list(columns_encoded_anew)} were encoded by this "
            f"graph's values, not the training graph's: its vectors are not comparable. {remedy}"
        )


def _check_node_type(graph: Graph, training_graph: Graph) -> None:
    """Raise InputError for a graph that is seen from another type of nodes than in training."""
    node_type = training_graph.node_type
    if graph.node_type == node_type:
        return
    remedy = ""
    if node_type in graph.types:
        remedy = f"Turn it to that type: graph.target({node_type!r})."
    expected, found = _nodes_of(node_type), _nodes_of(graph.node_type)
    raise InputError("graph", expected, found, remedy)


def _nodes_of(node_type: str) -> str:
    """Nodes of a type, in words."""
    return f"nodes of type {node_type}" if node_type else "nodes of one type"


def _check_directions(graph: Graph, training_graph: Graph, remedy: str) -> None:
    """Raise InputError for a graph whose edges within a type run otherwise than in training."""
    trained_directions = {
        relation.ends: relation.directed
        for relation in training_graph.relations
        if relation.edges.nnz
    }
    for relation in graph.relations:
        if not relation.within_one_type or not relation.edges.nnz:
            continue
        trained_direction = trained_directions.get(relation.ends, relation.directed)
        if trained_direction != relation.directed:
            location = "graph"
            if graph.has_named_types:
                location = f"graph, relation {'.'.join(relation.ends)}"
            expected = f"{_edges_that(trained_direction)}, as in training"
            raise InputError(location, expected, _edges_that(relation.directed), remedy)


def _edges_that(directed: bool) -> str:
    """Edges with directions or without, in words."""
    return "edges that have directions" if directed else "edges that run both ways"
