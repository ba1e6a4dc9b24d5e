"""Which tables make a graph of several types of nodes, and which choices concern each of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from infomax.arrays.relations import RELATION
from infomax.errors import InputError, shorten, suggest, warn
from infomax.io import text
from infomax.io.building import Ends, check_relation_names
from infomax.io.column_names import format_list, plain, spellings, split_by_type
from infomax.io.columns import COUNT, EVENT, MATRICES, OF_NODES, Columns
from infomax.io.label_names import LABEL, spelled_labels
from infomax.io.record import Record
from infomax.io.refusals import id_unknown
from infomax.io.schema.obeying import obeying
from infomax.io.schema.schema import Schema
from infomax.io.sources import EXTENSIONS, Source


@dataclass(frozen=True)
class Tables:
    """The node tables by type and the edge tables by relation, each with the choices that concern it.

    One table of all edges has no relation: its cells tell that of each edge, or the choices, or the node tables.
    """

    nodes: dict[str, Source]
    edges: dict[Ends | None, Source]
    columns: Columns
    directed: frozenset[Ends] = frozenset()
    """The relations within one type whose edges have directions, whatever a person says of all edges."""
    schema: Schema | None = None
    """Of a database, its tables: which of them become these, and by which keys."""

    @property
    def sources(self) -> list[Source]:
        """All tables in the order in which they are read."""
        return [*self.edges.values(), *self.nodes.values()]

    @property
    def types_with_tables(self) -> list[str]:
        """The types that have node tables of their own."""
        return [node_type for node_type in self.nodes if node_type != self.columns.edges_as]

    def told_ends(self, name: str) -> Ends | None:
        """The relation that the cell of an edge names, with its types; None: the node tables tell the types."""
        words = name.split(".")
        end_types = self.columns.types
        if len(words) > 1 and end_types and (words[0], words[-1]) != end_types:
            expected = f"relations from {end_types[0]} to {end_types[1]}, as --types says"
            remedy = "Leave out --types, or the types in the column."
            where = f"column {shorten(self.columns.edge_type)}"
            raise InputError(where, expected, shorten(name), remedy)
        if len(words) > 1:
            relation = name
            if len(words) == 2:
                relation = RELATION
            elif len(words) == 3:
                relation = words[1]
            return words[0], relation, words[-1]
        if not end_types and len(self.types_with_tables) < 2:
            only_type = next(iter(self.types_with_tables), "node")
            end_types = (only_type, only_type)
        return (end_types[0], name, end_types[1]) if end_types else None

    def around_rows(self, ends: Ends, *, alone: bool) -> tuple[Ends, Ends]:
        """The relations to and from the rows of an edge table, which are nodes, in place of a relation of it."""
        node_type = str(self.columns.edges_as)
        if node_type in ends[::2]:
            raise _known_type(node_type)
        prefix = "" if alone else f"{ends[1]} "
        to_rows = (ends[0], f"{prefix}source", node_type)
        from_rows = (node_type, f"{prefix}target", ends[2])
        return to_rows, from_rows

    def of_no_type(
        self, source: Source, column: str, identifier: Any, number: int, kinds: Sequence[str]
    ) -> InputError:
        """The error for an end of an edge that is in the node tables of none or several of the types."""
        if not kinds:
            return id_unknown(
                source,
                column,
                identifier,
                number,
                f"listed in {self.nodes[self.types_with_tables[0]].path}",
            )
        found = f"{shorten(identifier)}, an id of {' and of '.join(kinds)}"
        remedy = "Say which: --types TYPE,TYPE, or names such as author.writes.paper in the column of --edge-type."
        return InputError(source.location(number, column), "an id of one type", found, remedy)


def is_typed(folder: Path) -> bool:
    """Whether a folder holds tables of several types: folders ``edges`` and, optionally, ``nodes`` and ``features``."""
    return (folder / "edges").is_dir()


def of_folder(folder: Path, columns: Columns, *, attaches: bool = False) -> Tables:
    """The tables ``nodes/TYPE.*`` and ``edges/TYPE.RELATION.TYPE.*`` or ``edges/TYPE.TYPE.*`` of a folder.

    A type without a node table has the nodes of its edges. ``features/TYPE.npy`` or ``.npz`` are features of a type.
    For ``attaches`` see `of_sources`.
    """
    columns.refuse(
        ("groups", "matrix", "types", "edge_type", "node_type"),
        f"one type of nodes, rather than the several of {folder}",
    )
    table_extensions = None if columns.text_format.takes_any_extension else EXTENSIONS
    nodes = {
        node_type: Source([path], columns)
        for (node_type,), path in _files(folder / "nodes", table_extensions).items()
    }
    edges = {
        ends: Source([path], columns)
        for ends, path in _files(folder / "edges", table_extensions).items()
    }
    matrices = {
        node_type: path for (node_type,), path in _files(folder / "features", MATRICES).items()
    }
    for node_type in matrices.keys() - nodes.keys():
        raise InputError(
            str(matrices[node_type]),
            f"a table nodes/{node_type}.*, to whose rows they belong",
            "none",
        )
    return of_sources(nodes, edges, columns, matrices, attaches=attaches)


def _leave_out_new_tables(
    nodes: dict[str, Source], edges: dict[Ends, Source], columns: Columns
) -> None:
    """Leave out tables of types and relations that the known graph does not have, and say so.

    Nothing was learnt of them. Where the known graph was made of one edge table, its schema does not tell relations.
    """
    known_types = columns.of_types.keys()
    new_types = sorted(nodes.keys() - known_types)
    known_relations = set()
    if columns.schema is not None:
        tables = columns.schema.tables.values()
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


def _files(folder: Path, extensions: Collection[str] | None) -> dict[Any, Path]:
    """The files of a folder by the words of their names, a relation's by three; none where there is no such folder."""
    found: dict[tuple[str, ...], Path] = {}
    counts = (2, 3) if folder.name == "edges" else (1,)
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.startswith("."):
            continue
        suffix = text.extension(path)
        has_extension = extensions is None or suffix in extensions
        if not has_extension or not path.is_file():
            expected = f"a file with one of {', '.join(extensions or ())}"
            raise InputError(str(path), expected if extensions else "a file", "another")
        words = tuple(path.name[: -len(suffix)].split("."))
        if len(words) not in counts:
            expected = (
                "the name of a type, or in edges a name such as paper.writes.author or paper.author"
            )
            raise InputError(str(path), expected, shorten(".".join(words)), "Names have no dots.")
        words = (words[0], RELATION, words[1]) if len(words) == 2 else words
        check_relation_names(
            str(path), (words[0], words[1] if len(words) == 3 else RELATION, words[-1])
        )
        if words in found:
            raise InputError(
                str(folder), f"one file {'.'.join(words)}.*", f"{found[words].name} and {path.name}"
            )
        found[words] = path
    if not found and folder.name == "edges":
        raise InputError(str(folder), "tables such as paper.writes.author.csv", "none")
    return found


def of_sources(
    nodes: Mapping[str, Source],
    edges: Mapping[Ends, Source],
    columns: Columns,
    matrices: Mapping[str, Path] | None = None,
    *,
    is_database: bool = False,
    attaches: bool = False,
) -> Tables:
    """Node tables by type and edge tables by relation; a column that is named need only be in one of them.

    Those that a known graph does not have are left out, unless they hold new nodes, and it ``attaches`` these.
    """
    nodes = dict(nodes)
    edges = dict(edges)
    if columns.of_types and not (columns.obeys_schema or is_database or attaches):
        _leave_out_new_tables(nodes, edges, columns)
    headers = {node_type: source.names for node_type, source in nodes.items()}
    headers |= {
        ends[1]: source.names for ends, source in edges.items() if ends[1] == columns.edges_as
    }
    columns = replace(columns, labels=spelled_labels(columns.labels, headers))
    _refuse_missing(columns, headers, edges.values())
    if columns.edges_as and columns.edges_as not in (names := sorted(ends[1] for ends in edges)):
        raise InputError(
            "edges_as", f"a relation of that name ({', '.join(names)})", columns.edges_as
        )
    of_nodes = dict(nodes)
    columns = replace(
        columns,
        among=tuple({**nodes, **{node_type: None for ends in edges for node_type in ends[::2]}}),
    )
    for node_type, source in nodes.items():
        source.columns = _of_table(
            columns, node_type, source.names, (matrices or {}).get(node_type)
        )
        source.columns = obeying(source.columns, source.path, source.names)
    for ends, source in edges.items():
        source.apart = ends[0] != ends[2]
        source.columns = _of_relation(columns, source, ends)
        if not is_database:
            source.columns = obeying(source.columns, source.path, source.names)
        if ends[1] == columns.edges_as:
            _add_rows(columns, source, of_nodes)
    return Tables(of_nodes, dict[Ends | None, Source](edges.items()), columns)


def refuse_between(relations: Iterable[Ends]) -> None:
    """Refuse to keep directions where there are no edges that can have any, those within one type."""
    if all(ends[0] != ends[2] for ends in relations):
        found = "relations between two types, whose edges run both ways"
        raise InputError(
            "directed", "a relation within one type of nodes", found, "Leave out --directed."
        )


def of_two(edges: Source, nodes: Source | None, columns: Columns, known: Record | None) -> Tables:
    """An edge table and, where there is one, a node table: of one type without a name, or with columns of types."""
    columns = columns.as_before()
    timed = columns.time or columns.of_node_table(EVENT).remembered("time")
    is_time_of_edges = timed in edges.names and (nodes is None or timed not in nodes.names)
    if is_time_of_edges and not columns.edges_as:
        columns = replace(columns, edges_as=EVENT)
    if known is None:
        columns.refuse_other_types(edges.path, has_several_types=columns.typed)
    if columns.typed:
        return _of_several(edges, nodes, columns)
    if known is not None and known.has_named_types:
        raise InputError(
            str(edges.path),
            "a table for each relation, for several types of nodes",
            "one edge table",
        )
    if known is None and nodes is None:
        columns.refuse(
            OF_NODES, "a node table that they belong to", f"only the edge table {edges.path}"
        )
    edges.columns = obeying(columns.of_edge_table(), edges.path, edges.names)
    if nodes is not None:
        nodes.columns = obeying(columns.of_node_table(""), nodes.path, nodes.names)
    return Tables({} if nodes is None else {"": nodes}, {("", RELATION, ""): edges}, columns)


def _of_several(edges: Source, nodes: Source | None, columns: Columns) -> Tables:
    """Two tables with columns that tell types apart."""
    end_types = dict.fromkeys(columns.types or ("node",))
    columns_by_type: dict[str, list[str]] = {}
    if nodes is not None and columns.node_type in nodes.names:
        columns_by_type = nodes.types(columns.node_type)

    headers: dict[str, list[str]] = {}
    if columns.edges_as:
        headers[columns.edges_as] = edges.names
    if nodes is not None:
        headers |= dict.fromkeys(columns_by_type or end_types, nodes.names)
    columns = replace(columns, labels=spelled_labels(columns.labels, headers))
    _refuse_missing(columns, headers, [edges])
    columns = replace(columns, among=tuple(dict.fromkeys([*end_types, *headers])))

    of_nodes: dict[str, Source] = {}
    if nodes is not None and columns.node_type:
        for node_type, filled_columns in columns_by_type.items():
            chosen = _of_table(columns, node_type, filled_columns, columns.matrix)
            empty_columns = [name for name in nodes.names if name not in filled_columns]
            ignored = dict.fromkeys([*chosen.ignore, *empty_columns, columns.node_type])
            chosen = obeying(replace(chosen, ignore=tuple(ignored)), nodes.path, nodes.names)
            rows_of_type = (columns.node_type, node_type)
            of_nodes[node_type] = Source(nodes.files, chosen, nodes.frame, only=rows_of_type)
    elif nodes is not None:
        if len(end_types) > 1:
            remedy = "Or make a folder of tables: nodes/TYPE.csv and edges/TYPE.RELATION.TYPE.csv."
            expected = "a column that tells the type of a node: --node-type COLUMN"
            raise InputError(str(nodes.path), expected, "none", remedy)
        (node_type,) = end_types
        nodes.columns = _of_table(columns, node_type, nodes.names, columns.matrix)
        nodes.columns = obeying(nodes.columns, nodes.path, nodes.names)
        of_nodes = {node_type: nodes}

    edges.apart = True
    of_edges = obeying(columns.of_edge_table(), edges.path, edges.names)
    edges.columns = _with_ends(of_edges, edges, columns.types, strict=True)
    if columns.edges_as:
        _add_rows(columns, edges, of_nodes)
    return Tables(of_nodes, {None: edges}, columns)


def _add_rows(columns: Columns, edges: Source, nodes: dict[str, Source]) -> None:
    """Make the rows of an edge table nodes of a type: the other columns are features, ids are in ``id`` or numbers."""
    node_type = str(columns.edges_as)
    if node_type in nodes:
        raise _known_type(node_type)
    edges.columns = replace(edges.columns, edges_as=node_type)
    chosen = _of_table(columns, node_type, edges.names, None)

    of_edges = list(edges.ends)
    if columns.edge_type:
        of_edges.append(columns.edge_type)
    has_ids = chosen.find(edges.path, edges.names, "id") is not None
    if not has_ids:
        # Some column has to be that of ids; rows are numbered, so its cells are not read as such.
        chosen = replace(chosen, id=edges.ends[0], numbered=True)
        of_edges = of_edges[1:]
    ignored = dict.fromkeys([*chosen.ignore, *of_edges])
    chosen = replace(chosen, ignore=tuple(ignored))
    nodes[node_type] = Source(edges.files, chosen, edges.frame)


def _known_type(node_type: str) -> InputError:
    return InputError(
        "edges_as", "a new type of nodes", f"{shorten(node_type)}, a type of which there are nodes"
    )


_CHOICES_OF_NODES = ("id", "labels", "features", "ignore", "name", "time", "node_type", "kinds")
_CHOICES_OF_EDGES = ("source", "target", "weight", "edge_type")


def _refuse_missing(
    columns: Columns, nodes: Mapping[str, list[str]], edges: Iterable[Source]
) -> None:
    """Refuse a column that was named, or TYPE.NAME, and is in no table; nodes have these headers by type."""
    of_nodes = {name for header in nodes.values() for name in header}
    of_nodes |= {f"{node_type}.{name}" for node_type, header in nodes.items() for name in header}
    of_nodes |= {name.replace(LABEL, "", 1) for name in of_nodes}
    of_edges = {name for source in edges for name in source.names}
    node_tables = f"the node tables of {', '.join(nodes)}" if nodes else "no node table"
    for choice in _CHOICES_OF_NODES:
        _refuse_names_outside(columns, choice, of_nodes, node_tables)
    for choice in _CHOICES_OF_EDGES:
        _refuse_names_outside(columns, choice, of_edges, "the edge tables")


def _refuse_names_outside(columns: Columns, choice: str, header: set[str], tables: str) -> None:
    """Refuse a name in a choice that is no column of the tables."""
    chosen = getattr(columns, choice) or ()
    if choice == "features" and columns.structural_features:
        return
    for name in split_by_type(chosen) if isinstance(chosen, str) else chosen:
        is_count = choice == "weight" and name == COUNT
        if name not in header and not is_count:
            option = "columns" if choice == "kinds" else choice
            expected = f"a column {shorten(name)} in one of the tables"
            raise InputError(option, expected, f"none in {tables}", suggest(name, sorted(header)))


def _of_table(columns: Columns, node_type: str, header: list[str], matrix: Path | None) -> Columns:
    """The choices that concern the node table of a type, with this header: those of TYPE.NAME before those of NAME."""
    names = {*header, *(name.removeprefix(LABEL) for name in header)}

    def in_table(words: Iterable[str]) -> dict[str, str]:
        """The columns of the table among those that were named, and how they were."""
        columns_by_word = {
            word: word if word in names else word.removeprefix(f"{node_type}.") for word in words
        }
        return {name: word for word, name in columns_by_word.items() if name in names}

    named_columns = in_table([*columns.labels, *columns.ignore, *columns.kinds])
    named_by_type = {name for name, word in named_columns.items() if name != word}

    def chosen(words: Iterable[str]) -> dict[str, str]:
        return {
            name: word
            for name, word in in_table(words).items()
            if name != word or name not in named_by_type
        }

    features = columns.features
    if features is not None and not columns.structural_features:
        features = tuple(in_table(features))
    uses: dict[str, Any] = {
        use: next(iter(in_table(split_by_type(getattr(columns, use) or ""))), None)
        for use in ("id", "name", "time")
    }
    of_table = Columns(
        labels=tuple(chosen(columns.labels)),
        ignore=tuple(chosen(columns.ignore)),
        features=features,
        matrix=matrix,
        schema=columns.schema,
        obeys_schema=columns.obeys_schema,
        schema_path=columns.schema_path,
        kinds={name: columns.kinds[word] for name, word in chosen(columns.kinds).items()},
        # A column called as its own table is a value, such as the rating of ratings.
        among=tuple(name for name in columns.among if name != node_type),
        learns=columns.learns,
        as_of=columns.as_of,
        text_format=columns.text_format,
        **uses,
    ).of_node_table(node_type)
    if node_type in columns.of_types:
        return of_table.like(*columns.of_types[node_type])
    return of_table


def _of_relation(columns: Columns, edges: Source, ends: Ends) -> Columns:
    """The choices that concern the edge table of a relation: those columns that it has."""
    there = {*edges.names, COUNT}
    uses: dict[str, Any] = {}
    for word in ("source", "target", "weight"):
        column = getattr(columns, word)
        uses[word] = column if column in there else None
    given: dict[str, Any] = {
        "obeys_schema": columns.obeys_schema,
        "schema_path": columns.schema_path,
        "text_format": columns.text_format,
    }
    of_table = Columns(schema=columns.schema, **given, **uses).of_edge_table(ends)
    return _with_ends(of_table, edges, ends[::2])


def _with_ends(
    columns: Columns, edges: Source, kinds: Sequence[str], *, strict: bool = False
) -> Columns:
    """The same choices, with the columns of the ends that are called as these two types are.

    Refused is a table with a column that is called so and would not be taken and, where it is ``strict``, one in which
    neither the names of types nor source and target tell both ends.
    """
    header = edges.names
    if len({*kinds}) != 2:
        return columns
    words = ("source", "target")
    by_type = {
        word: _called(node_type, header) for word, node_type in zip(words, kinds, strict=True)
    }
    known = {word: getattr(columns, word) or columns.remembered(word) for word in words}
    ends = by_type | {word: column for word, column in known.items() if column in header}
    ends = ends if len({*ends.values()}) == 2 else by_type
    if None not in ends.values() and len({*ends.values()}) == 2:
        return replace(columns, source=ends["source"], target=ends["target"])
    taken = columns.of_edges(edges.path, header)[:2]
    if columns.names_ends(taken):
        return columns
    if strict or any(
        end not in (None, place) for end, place in zip(ends.values(), taken, strict=True)
    ):
        lost = [
            node_type for node_type, end in zip(kinds, ends.values(), strict=True) if end is None
        ]
        expected = (
            f"columns called as the types {kinds[0]} and {kinds[1]} are, or source and target"
        )
        found = f"none for {' and '.join(lost or kinds)} among {format_list(header)}"
        remedy = "Name both: --source COLUMN --target COLUMN (in Python: source=, target=)."
        raise InputError(str(edges.path), expected, found, remedy)
    return columns


def _called(node_type: str, header: Sequence[str]) -> str | None:
    """The column that is called as a type is: driver, else driver_id, driverId, driverid or id_driver."""
    if node_type in header:
        return node_type
    return next(
        (name for own in spellings(node_type) for name in header if plain(name) == own), None
    )
