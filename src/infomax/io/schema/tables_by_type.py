"""Which tables make a graph: one of edges and one of nodes, or tables of several types."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from infomax.arrays.relations import RELATION
from infomax.errors import InputError, shorten, suggest, warn
from infomax.io import text
from infomax.io.building import check_relation_names
from infomax.io.choices import CHOICES_OF_NODES, UserChoices
from infomax.io.column_names import LABEL, spelled_labels, split_by_type
from infomax.io.features import MATRICES
from infomax.io.schema.resolving import find_column, resolve_edge_table, resolve_node_table
from infomax.io.schema.schema import (
    COUNT,
    EVENT,
    ONLY_RELATION,
    Ends,
    Schema,
    TableSchema,
    TypeColumns,
)
from infomax.io.sources import EXTENSIONS, Source
from infomax.io.tables import EdgeTable, NodeTable, Tables

_NAMED_COLUMNS_OF_NODES = (
    "id",
    "labels",
    "features",
    "ignore",
    "name",
    "time",
    "node_type",
    "column_types",
)
_NAMED_COLUMNS_OF_EDGES = ("source", "target", "weight", "edge_type")


def two_tables(
    edges: Source, nodes: Source | None, choices: UserChoices, feature_file: Path | None = None
) -> Tables:
    """The tables of an edge table and, where there is one, a node table.

    The graph has one type of nodes without a name, unless columns tell types apart.

    Args:
        edges: the edge table.
        nodes: the node table.
        choices: what a person says of both.
        feature_file: a file of features that lies beside the tables.
    """
    type_columns = _with_events(choices.type_columns(), edges, nodes, choices)
    has_several_types = not type_columns.is_empty
    if not choices.attaches:
        choices.refuse_other_types(edges.path, has_several_types=has_several_types)
    if has_several_types:
        return _tables_of_types(edges, nodes, choices, type_columns)

    if choices.attaches and choices.like is not None and choices.like.has_named_types:
        expected = "a table for each relation, for several types of nodes"
        raise InputError(str(edges.path), expected, "one edge table")
    if nodes is None and not choices.attaches:
        expected = "a node table that they belong to"
        found = f"only the edge table {edges.path}"
        choices.refuse(CHOICES_OF_NODES, expected, found)
        # Features of an earlier graph are columns of nodes, unless they were made of its edges.
        has_features = choices.learnt_features("") is not None
        if has_features and choices.structural_features is None:
            raise InputError("features", expected, found)
    edge_table = resolve_edge_table(edges, choices)
    node_tables: dict[str, NodeTable] = {}
    if nodes is not None:
        node_tables[""] = resolve_node_table(
            nodes,
            choices,
            _earlier_nodes(choices.schema, ""),
            feature_file=choices.feature_file or feature_file,
            features=choices.learnt_features(""),
        )
    return Tables(node_tables, {ONLY_RELATION: edge_table}, choices)


def _with_events(
    type_columns: TypeColumns, edges: Source, nodes: Source | None, choices: UserChoices
) -> TypeColumns:
    """The columns of types, with the rows of the edge table as events where these have the times.

    They are events where the edge table has the column of times, and no node table has it.
    """
    time_column = choices.time
    earlier_table = _earlier_nodes(choices.schema, EVENT)
    if time_column is None and earlier_table is not None and earlier_table.time is not None:
        time_column = earlier_table.time.column or None
    is_time_of_edges = time_column in edges.names and (
        nodes is None or time_column not in nodes.names
    )
    if is_time_of_edges and not type_columns.edges_as:
        return replace(type_columns, edges_as=EVENT)
    return type_columns


def _earlier_nodes(schema: Schema | None, node_type: str) -> TableSchema | None:
    return None if schema is None else schema.of_type(node_type)


def _tables_of_types(
    edges: Source, nodes: Source | None, choices: UserChoices, type_columns: TypeColumns
) -> Tables:
    """An edge table and, where there is one, a node table, with columns that tell types apart."""
    end_types = dict.fromkeys(type_columns.ends or ("node",))
    columns_by_type: dict[str, list[str]] = {}
    if nodes is not None and type_columns.node_type in nodes.names:
        columns_by_type = nodes.filled_columns_by_word(type_columns.node_type)

    headers: dict[str, list[str]] = {}
    if type_columns.edges_as:
        headers[type_columns.edges_as] = edges.names
    if nodes is not None:
        headers |= dict.fromkeys(columns_by_type or end_types, nodes.names)
    choices = replace(choices, labels=spelled_labels(choices.labels, headers))
    _refuse_missing(choices, type_columns, headers, [edges])
    all_types = list(dict.fromkeys([*end_types, *headers]))

    node_tables: dict[str, NodeTable] = {}
    if nodes is not None and type_columns.node_type:
        for node_type, filled_columns in columns_by_type.items():
            rows_of_type = replace(nodes, rows_with=(type_columns.node_type, node_type))
            unread = {name for name in nodes.names if name not in filled_columns}
            node_tables[node_type] = resolve_node_table(
                rows_of_type,
                choices.of_table(node_type, filled_columns),
                _earlier_nodes(choices.schema, node_type),
                node_type=node_type,
                all_types=all_types,
                feature_file=choices.feature_file,
                unread={*unread, type_columns.node_type},
                features=choices.learnt_features(node_type),
            )
    elif nodes is not None:
        if len(end_types) > 1:
            expected = "a column that tells the type of a node: --node-type COLUMN"
            remedy = "Or make a folder of tables: nodes/TYPE.csv and edges/TYPE.RELATION.TYPE.csv."
            raise InputError(str(nodes.path), expected, "none", remedy)
        (node_type,) = end_types
        node_tables[node_type] = resolve_node_table(
            nodes,
            choices.of_table(node_type, nodes.names),
            _earlier_nodes(choices.schema, node_type),
            node_type=node_type,
            all_types=all_types,
            feature_file=choices.feature_file,
            features=choices.learnt_features(node_type),
        )

    edge_table = resolve_edge_table(
        edges,
        choices,
        None,
        end_types=type_columns.ends or (),
        are_types_required=True,
        relation_column=type_columns.edge_type,
        row_type=type_columns.edges_as,
    )
    if type_columns.edges_as:
        _add_rows(edge_table, node_tables, choices, choices.schema, all_types)
    return Tables(node_tables, {None: edge_table}, choices, type_columns)


def is_typed(folder: Path) -> bool:
    """Whether a folder holds tables of several types.

    It has a folder ``edges`` and, optionally, folders ``nodes`` and ``features``.
    """
    return (folder / "edges").is_dir()


def folder_tables(folder: Path, choices: UserChoices) -> Tables:
    """The tables of a folder: ``nodes/TYPE.*``, and ``edges/TYPE.RELATION.TYPE.*`` or
    ``edges/TYPE.TYPE.*``.

    A type without a node table has the nodes of its edges. ``features/TYPE.npy`` or ``.npz`` are
    features of a type.
    """
    choices.refuse(
        ("groups", "feature_file", "types", "edge_type", "node_type"),
        f"one type of nodes, rather than the several of {folder}",
    )
    text_format = choices.text_format
    table_extensions = None if text_format.takes_any_extension else EXTENSIONS
    nodes = {
        node_type: Source([path], text_format=text_format)
        for (node_type,), path in _files_by_type(folder / "nodes", table_extensions).items()
    }
    edges = {
        ends: Source([path], text_format=text_format)
        for ends, path in _files_by_type(folder / "edges", table_extensions).items()
    }
    feature_files = {
        node_type: path
        for (node_type,), path in _files_by_type(folder / "features", MATRICES).items()
    }
    for node_type in feature_files.keys() - nodes.keys():
        expected = f"a table nodes/{node_type}.*, to whose rows they belong"
        raise InputError(str(feature_files[node_type]), expected, "none")
    return typed_tables(nodes, edges, choices, feature_files)


def _files_by_type(folder: Path, extensions: Collection[str] | None) -> dict[Any, Path]:
    """The files of a folder by the parts of their names.

    A type has one part, a relation three. A folder that is missing has no files.
    """
    files: dict[tuple[str, ...], Path] = {}
    is_of_edges = folder.name == "edges"
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.startswith("."):
            continue
        suffix = text.extension(path)
        has_extension = extensions is None or suffix in extensions
        if not has_extension or not path.is_file():
            expected = "a file"
            if extensions:
                expected = f"a file with one of {', '.join(extensions)}"
            raise InputError(str(path), expected, "another")
        parts = tuple(path.name[: -len(suffix)].split("."))
        possible_lengths = (2, 3) if is_of_edges else (1,)
        if len(parts) not in possible_lengths:
            expected = (
                "the name of a type, or in edges a name such as paper.writes.author or paper.author"
            )
            raise InputError(str(path), expected, shorten(".".join(parts)), "Names have no dots.")
        if len(parts) == 2:
            parts = (parts[0], RELATION, parts[1])
        relation_name = parts[1] if len(parts) == 3 else RELATION
        check_relation_names(str(path), (parts[0], relation_name, parts[-1]))
        if parts in files:
            expected = f"one file {'.'.join(parts)}.*"
            raise InputError(str(folder), expected, f"{files[parts].name} and {path.name}")
        files[parts] = path
    if not files and is_of_edges:
        raise InputError(str(folder), "tables such as paper.writes.author.csv", "none")
    return files


def typed_tables(
    nodes: Mapping[str, Source],
    edges: Mapping[Ends, Source],
    choices: UserChoices,
    feature_files: Mapping[str, Path] | None = None,
    *,
    made_schema: Schema | None = None,
) -> Tables:
    """The tables of several types: node tables by type, and edge tables by relation.

    A column that a person names need only be in one of them.

    Args:
        nodes: the node tables. Those that an earlier graph does not have are left out, unless they
            hold new nodes.
        edges: the edge tables, likewise.
        choices: what a person says of all of them.
        feature_files: files of features, in place of columns.
        made_schema: what the node tables are, where a database made them of its own tables.
    """
    is_database = made_schema is not None
    schema = choices.schema if made_schema is None else made_schema
    nodes = dict(nodes)
    edges = dict(edges)
    if choices.learnt_types and not (is_database or choices.attaches):
        _leave_out_new_tables(nodes, edges, choices)
    type_columns = choices.type_columns(("edges_as",))
    headers = {node_type: source.names for node_type, source in nodes.items()}
    for ends, source in edges.items():
        if ends[1] == type_columns.edges_as:
            headers[ends[1]] = source.names
    choices = replace(choices, labels=spelled_labels(choices.labels, headers))
    _refuse_missing(choices, type_columns, headers, edges.values())
    relation_names = sorted(ends[1] for ends in edges)
    if type_columns.edges_as and type_columns.edges_as not in relation_names:
        expected = f"a relation of that name ({', '.join(relation_names)})"
        raise InputError("edges_as", expected, type_columns.edges_as)

    all_types = dict.fromkeys(nodes)
    for ends in edges:
        all_types |= dict.fromkeys((ends[0], ends[2]))
    node_tables = {
        node_type: resolve_node_table(
            source,
            choices.of_table(node_type, source.names),
            _earlier_nodes(schema, node_type),
            node_type=node_type,
            all_types=list(all_types),
            feature_file=(feature_files or {}).get(node_type),
            features=choices.learnt_features(node_type),
        )
        for node_type, source in nodes.items()
    }
    edge_tables: dict[Ends | None, EdgeTable] = {}
    for ends, source in edges.items():
        edge_tables[ends] = resolve_edge_table(
            source,
            choices.of_edge_table(source.names),
            ends,
            end_types=(ends[0], ends[2]),
            row_type=ends[1] if ends[1] == type_columns.edges_as else "",
            is_database=is_database,
        )
        if edge_tables[ends].row_type:
            _add_rows(edge_tables[ends], node_tables, choices, schema, list(all_types))
    return Tables(node_tables, edge_tables, choices, type_columns)


def _leave_out_new_tables(
    nodes: dict[str, Source], edges: dict[Ends, Source], choices: UserChoices
) -> None:
    """Leave out tables of types and relations that the earlier graph does not have, and say so.

    Nothing was learnt of them. Where the earlier graph was made of one edge table, its schema does
    not tell relations.
    """
    known_types = {*choices.learnt_types}
    new_types = sorted(nodes.keys() - known_types)
    known_relations: set[Ends | None] = set()
    if choices.schema is not None:
        tables = choices.schema.tables.values()
        known_relations = {table.ends for table in tables if table.role == "edges"}
    tells_relations = bool(known_relations) and None not in known_relations
    new_relations = []
    for ends in edges:
        has_known_types = {ends[0], ends[2]} <= known_types
        if not has_known_types or (tells_relations and ends not in known_relations):
            new_relations.append(ends)

    left_out = [nodes.pop(node_type) for node_type in new_types]
    left_out += [edges.pop(ends) for ends in new_relations]
    if not edges:
        known_names = [".".join(ends) for ends in known_relations if ends is not None]
        expected = f"a relation of the known graph ({', '.join(sorted(known_names))})"
        raise InputError(str(left_out[-1].path), expected, "another")
    if left_out:
        names = ", ".join(str(source.path) for source in left_out)
        warn(f"left out, as the known graph has no such table: {names}.")


def _add_rows(
    edges: EdgeTable,
    nodes: dict[str, NodeTable],
    choices: UserChoices,
    schema: Schema | None,
    all_types: Sequence[str],
) -> None:
    """Make the rows of an edge table nodes of a type.

    Columns that are no ends are their features. Their ids are in the column ``id``, else they are
    the numbers of the rows.
    """
    node_type = edges.row_type
    if node_type in nodes:
        raise refuse_known_type(node_type)
    source = edges.source
    earlier_table = _earlier_nodes(schema, node_type)
    table_choices = choices.of_table(node_type, source.names)
    id_column = find_column(source.path, source.names, "id", table_choices.id, earlier_table)
    unread = {*edges.ends}
    if edges.schema.relation.column is not None:
        unread.add(edges.schema.relation.column)
    nodes[node_type] = resolve_node_table(
        replace(source),
        table_choices,
        earlier_table,
        node_type=node_type,
        all_types=all_types,
        unread=unread,
        has_ids=id_column is not None,
        features=choices.learnt_features(node_type),
    )


def refuse_known_type(node_type: str) -> InputError:
    """The error for rows of edges that are to be nodes of a type of which there are nodes."""
    found = f"{shorten(node_type)}, a type of which there are nodes"
    return InputError("edges_as", "a new type of nodes", found)


def _refuse_missing(
    choices: UserChoices,
    type_columns: TypeColumns,
    headers_of_nodes: Mapping[str, list[str]],
    edges: Iterable[Source],
) -> None:
    """Refuse a column, named as NAME or TYPE.NAME, that no table has."""
    names_of_nodes = {name for header in headers_of_nodes.values() for name in header}
    for node_type, header in headers_of_nodes.items():
        names_of_nodes |= {f"{node_type}.{name}" for name in header}
    names_of_nodes |= {name.replace(LABEL, "", 1) for name in names_of_nodes}
    names_of_edges = {name for source in edges for name in source.names}

    node_tables = "no node table"
    if headers_of_nodes:
        node_tables = f"the node tables of {', '.join(headers_of_nodes)}"
    choices = replace(
        choices,
        node_type=type_columns.node_type or None,
        edge_type=type_columns.edge_type or None,
    )
    for choice in _NAMED_COLUMNS_OF_NODES:
        _refuse_names_outside(choices, choice, names_of_nodes, node_tables)
    for choice in _NAMED_COLUMNS_OF_EDGES:
        _refuse_names_outside(choices, choice, names_of_edges, "the edge tables")


def _refuse_names_outside(choices: UserChoices, choice: str, names: set[str], tables: str) -> None:
    """Refuse a name in a choice that is no column of the tables."""
    if choice == "features" and choices.structural_features:
        return
    chosen_names = getattr(choices, choice) or ()
    if isinstance(chosen_names, str):
        chosen_names = split_by_type(chosen_names)
    for name in chosen_names:
        is_count = choice == "weight" and name == COUNT
        if name not in names and not is_count:
            option = "columns" if choice == "column_types" else choice
            expected = f"a column {shorten(name)} in one of the tables"
            raise InputError(option, expected, f"none in {tables}", suggest(name, sorted(names)))
