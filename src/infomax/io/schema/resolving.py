"""What one table becomes: the one place where the columns of a table are told apart.

What a person says comes first, then what a schema says of the table (that of an earlier graph, or
one that a person gave), then the names of the columns, then their places. Rows are not read for it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from infomax.arrays.structural_features import requested_structural_features
from infomax.errors import InputError, format_location, shorten, suggest
from infomax.io.choices import LearntFeatures, UserChoices
from infomax.io.column_names import (
    GROUPS,
    LABEL,
    NAME,
    SPLIT,
    TIME,
    format_list,
    keys,
    plain,
    spelled_labels,
    spellings,
    warn_unused,
)
from infomax.io.schema.schema import (
    COUNT,
    ONLY_RELATION,
    ColumnSchema,
    Ends,
    Origin,
    TableSchema,
    TimeUse,
    Use,
)
from infomax.io.schema.schema_file import JsonPath, location_in
from infomax.io.sources import Source
from infomax.io.tables import EdgeTable, NodeTable, schema_location, with_learnt_types

_REASONS_OF_PLACES = {
    "id": "the first column",
    "name": "texts that tell rows apart",
    "source": "one of the first two columns",
    "target": "one of the first two columns",
}
_USES = ("id", "name", "source", "target", "weight", "group", "relation")


def resolve_node_table(
    source: Source,
    choices: UserChoices,
    earlier_table: TableSchema | None = None,
    *,
    node_type: str = "",
    all_types: Sequence[str] = (),
    feature_file: Path | None = None,
    unread: Collection[str] = (),
    has_ids: bool = True,
    features: LearntFeatures | None = None,
    may_learn: bool = True,
) -> NodeTable:
    """The table of the nodes of a type, and what its columns are.

    Args:
        source: the table.
        choices: what a person says of it.
        earlier_table: the table in the schema that it is read by, if any.
        node_type: the type; empty where a graph has one.
        all_types: all types of nodes of the graph: a column that is called after one holds its ids.
        feature_file: a file that holds the features, in place of columns.
        unread: columns that have another use: the ends of edges whose rows are nodes, or what tells
            types apart.
        has_ids: whether there is a column of ids; else they are the numbers of the rows.
        features: how the features of an earlier graph were made of the columns.
        may_learn: whether features may be other than numbers.
    """
    path = source.path
    names = source.names
    decided = _Decided(choices, earlier_table, path, names, unread)
    ignored_choices = [name for name in choices.ignore if name not in unread]
    require(path, names, ignored_choices, "column to ignore")
    require(path, names, list(choices.column_types), "column whose type is set")

    # Columns of one use each: ids, names, times and the graphs of nodes.
    kept = [name for name in names if name not in decided.ignored]
    id_column: str | None = None
    if has_ids:
        id_column = _id_column(path, kept, choices, earlier_table)
    other_columns = [name for name in kept if name != id_column]
    group_column = GROUPS if GROUPS in other_columns else None
    labels = _labels(path, other_columns, decided.labels)
    if decided.groups is not None:
        group_column = _prefixed(path, other_columns, decided.groups, "column of groups")
    usual_names = (NAME, _earlier_column(earlier_table, "name"))
    name_column = choices.name or _first_among(usual_names, other_columns)
    if name_column is not None:
        name_column = _prefixed(path, other_columns, name_column, "column of names")
    usual_times = (TIME, _earlier_column(earlier_table, "time"))
    time_column = choices.time or _first_among(usual_times, other_columns)
    if time_column is not None:
        time_column = _prefixed(path, other_columns, time_column, "column of times")

    splits = [name for name in other_columns if name.startswith(SPLIT)]

    # Features: the columns that were named, else all without another use.
    feature_columns: set[str] = set()
    if feature_file is None:
        other_uses = {*labels.values(), *splits, group_column}
        _refuse_two_uses(path, decided.column_types, other_uses)
        wanted_features = choices.features if features is None else features.columns
        if wanted_features is None:
            annotations = {*other_uses, name_column, time_column}
            feature_columns = {name for name in other_columns if name not in annotations}
            # A column whose type was said may be the name, too.
            feature_columns |= decided.column_types.keys()
        else:
            feature_columns = _named_features(source, other_columns, wanted_features, features)
            if features is None:
                _refuse_two_uses(path, dict.fromkeys(feature_columns, "a feature"), other_uses)
            elif not feature_columns:
                features = None

    # Each column has one role, with a reason for a person.
    columns: dict[str, ColumnSchema] = {}
    for name in names:
        if name in labels.values():
            columns[name] = ColumnSchema("label", origin=_origin(name in decided.labels))
        elif name in splits:
            columns[name] = ColumnSchema("split", reason=f"called {name}")
        elif name in feature_columns and name in decided.column_types:
            columns[name] = ColumnSchema("feature", decided.column_types[name], "said")
        elif name in feature_columns:
            columns[name] = ColumnSchema("feature")
        elif name in (id_column, group_column, time_column):
            continue  # the table says these uses
        elif name == name_column:
            columns[name] = ColumnSchema("ignored", reason="it names the nodes")
        elif name in unread and source.rows_with is not None:
            reason = "it tells the type, or is empty for this one"
            columns[name] = ColumnSchema("ignored", reason=reason)
        elif name in unread:
            columns[name] = ColumnSchema("ignored", reason="an end or the relation of an edge")
        else:
            columns[name] = ColumnSchema("ignored", origin=_origin(name in decided.ignored))

    time = None
    if time_column is not None:
        time = TimeUse(time_column, origin="said" if choices.time else "found")
        earlier_time = None if earlier_table is None else earlier_table.time
        if earlier_time is not None and earlier_time.column == time_column:
            time = earlier_time
    schema = TableSchema(
        role="nodes" if earlier_table is None else earlier_table.role,
        node_type=node_type,
        id=_use(earlier_table, "id", id_column, choices.id),
        name=_use(earlier_table, "name", name_column, choices.name),
        time=time,
        group=_use(earlier_table, "group", group_column, decided.groups),
        columns=columns,
        origin="found" if earlier_table is None else earlier_table.origin,
        reason="" if earlier_table is None else earlier_table.reason,
    )
    if features is not None and features.encoding is not None:
        schema = with_learnt_types(schema, features.encoding)
    key_columns: Sequence[str] = ()
    if choices.features is None and features is None:
        # A column called as its own table is a value, such as the rating of ratings.
        other_types = [name for name in all_types if name != node_type]
        key_columns = keys(schema.with_role("feature"), other_types)
    return NodeTable(
        source,
        schema,
        choices,
        earlier_table,
        labels=labels,
        features=features,
        feature_file=feature_file,
        key_columns=key_columns,
        may_learn=may_learn,
    )


class _Decided:
    """What a person decided about the columns of a node table, by options or by a schema."""

    def __init__(
        self,
        choices: UserChoices,
        earlier_table: TableSchema | None,
        path: Path,
        header: Sequence[str],
        unread: Collection[str],
    ) -> None:
        self.labels = list(choices.labels)
        self.ignored = {*choices.ignore, *unread}
        self.column_types = dict(choices.column_types)
        self.groups = choices.groups
        if not choices.obeys_schema:
            return
        earlier_table = _table_in_schema(choices, earlier_table, path)
        _refuse_missing_columns(choices, earlier_table, path, header)
        used = {*choices.labels, *choices.column_types, *earlier_table.with_role("split")}
        if earlier_table.time is not None:
            used.add(earlier_table.time.column)
        for purpose in _USES:
            used.update(getattr(earlier_table, purpose).columns)
        for name in earlier_table.with_role("label"):
            used.add(name)
            if name not in self.labels:
                self.labels.append(name)
        for name in earlier_table.with_role("feature"):
            used.add(name)
            column_type = earlier_table.columns[name].column_type
            is_type_decided = column_type not in ("", "numbers")
            if name in header and is_type_decided and name not in choices.labels:
                self.column_types.setdefault(name, column_type)
        # Names and times that a database puts together are no columns of a table, and lookups stand
        # for keys.
        used |= _names_of_lookups(earlier_table)
        self.ignored |= {
            name for name in header if name not in used and not name.startswith("node:")
        }
        self.groups = self.groups or earlier_table.group.column


def _id_column(
    path: Path, kept: Sequence[str], choices: UserChoices, earlier_table: TableSchema | None
) -> str:
    """The column of ids, see `find_column`; without one of these, the first column."""
    if not kept:
        raise InputError(str(path), "a column of ids", "none that is not ignored")
    id_column = find_column(path, kept, "id", choices.id, earlier_table)
    if id_column is None:
        _refuse_row_numbers(path, kept[0], "--id COLUMN (in Python: id=)")
        return kept[0]
    return id_column


def _labels(path: Path, names: Sequence[str], label_names: Sequence[str]) -> dict[str, str]:
    """The columns of labels by the names of the labels.

    They are those that were named, then those whose names begin with the prefix of labels.
    """
    # One table is called as its file is: people.country.
    table_name = path.name.partition(".")[0]
    labels: dict[str, str] = {}
    for name in spelled_labels(label_names, {table_name: names}):
        label = name
        unqualified = name.removeprefix(f"{table_name}.")
        if name not in names and unqualified in names:
            label = unqualified
        labels[label] = _prefixed(path, names, label)
    columns = {*labels.values()}
    for name in names:
        if name.startswith(LABEL) and name not in columns:
            labels.setdefault(name.removeprefix(LABEL), name)
    return labels


def _prefixed(path: Path, names: Collection[str], name: str, what: str = "label column") -> str:
    """The column of a label by its name, with or without the prefix."""
    if name in names:
        return name
    if LABEL + name not in names:
        require(path, names, [name], what)
    return LABEL + name


def _refuse_two_uses(
    path: Path, features: Mapping[str, str], annotations: Collection[str | None]
) -> None:
    """Refuse a column that is to be both a feature and a label, a split or the graphs."""
    twice = [name for name in features if name in annotations]
    if twice:
        found = f"{features[twice[0]]}, and a label, a split or the graphs as well"
        location = format_location(path, column=twice[0])
        raise InputError(location, "one use", found, "Leave one out.")


def _named_features(
    source: Source,
    names: Collection[str],
    wanted: Sequence[str],
    features: LearntFeatures | None,
) -> set[str]:
    """The columns of the features that were named; empty where these are structural features."""
    columns = source.columns_of_features(wanted)
    missing = [name for name in columns if name not in names]
    if missing and requested_structural_features(wanted):
        return set()
    has_encoding = features is not None and features.encoding is not None
    remedy = "Add it; a cell may be empty." if has_encoding else ""
    require(source.path, names, missing, "feature column", remedy)
    return {*columns}


def resolve_edge_table(
    source: Source,
    choices: UserChoices,
    ends: Ends | None = ONLY_RELATION,
    *,
    end_types: Sequence[str] = (),
    are_types_required: bool = False,
    relation_column: str = "",
    row_type: str = "",
    is_database: bool = False,
    warns_of_unused: bool = True,
) -> EdgeTable:
    """The table of the edges of a relation, and what its columns are.

    Args:
        source: the table.
        choices: what a person says of all tables: of columns of edges, those that the table has.
        ends: the relation; None: there are several in the table.
        end_types: the types of the nodes at both ends, after which their columns may be called.
        are_types_required: refuse a table in which neither these types nor source and target tell
            both ends.
        relation_column: the column that names the relation of an edge.
        row_type: the type of nodes that its rows become.
        is_database: whether a database made the table of its own tables, which a schema does not
            describe.
        warns_of_unused: name the columns that have no effect, unless an earlier graph has decided
            about them.
    """
    path = source.path
    names = source.names
    earlier_table = None
    if choices.schema is not None and not is_database:
        earlier_table = choices.schema.of_relation(ends) or choices.schema.of_relation(
            ONLY_RELATION
        )
    if choices.obeys_schema and not is_database:
        _refuse_missing_columns(
            choices, _table_in_schema(choices, earlier_table, path), path, names
        )

    weight_choice = choices.weight or _earlier_column(earlier_table, "weight")
    counts_rows = weight_choice == COUNT and COUNT not in names
    weight_column: str | None = COUNT
    if not counts_rows:
        weight_column = find_column(path, names, "weight", choices.weight, earlier_table)
    if relation_column:
        require(path, names, [relation_column], "column for edge_type")

    ends_by_type = _ends_by_type(source, choices, earlier_table, end_types)
    if ends_by_type is not None:
        first, last = ends_by_type
        is_named = True
    else:
        first, last = _ends_by_name_or_place(
            source, choices, earlier_table, {weight_column, relation_column}, has_ids=bool(row_type)
        )
        is_named = _is_end_named(first, "source", choices.source, earlier_table)
        is_named = is_named and _is_end_named(last, "target", choices.target, earlier_table)
        if not is_named:
            _refuse_other_ends(source, end_types, (first, last), is_strict=are_types_required)

    used = {first, last, weight_column, relation_column}
    reason = "its rows are nodes" if row_type else "no end and no weight of an edge"
    unused = {name: ColumnSchema("ignored", reason=reason) for name in names if name not in used}
    if warns_of_unused and unused and not row_type and choices.like is None:
        hint = " To make a node of each row, with its columns: --edges-as NAME (edges_as=)."
        if weight_column is None:
            hint = f" If one holds weights: --weight COLUMN (in Python: weight=).{hint}"
        warn_unused(str(path), list(unused), "edge columns", hint)
    schema = TableSchema(
        "edges",
        ends=ends,
        source=_use(earlier_table, "source", first, choices.source, is_named=is_named),
        target=_use(earlier_table, "target", last, choices.target, is_named=is_named),
        weight=_use(earlier_table, "weight", weight_column, choices.weight),
        relation=_use(earlier_table, "relation", relation_column or None, choices.edge_type),
        columns=unused,
    )
    has_two_types = ends is None or ends[0] != ends[2]
    return EdgeTable(source, schema, earlier_table, is_named, has_two_types, row_type)


def _ends_by_name_or_place(
    source: Source,
    choices: UserChoices,
    earlier_table: TableSchema | None,
    used: Collection[str | None],
    *,
    has_ids: bool,
) -> tuple[str, str]:
    """The columns of both ends of edges.

    They are those that were named, else those called source and target, else the first two columns
    without another use.
    """
    path = source.path
    names = source.names
    first = find_column(path, names, "source", choices.source, earlier_table)
    last = find_column(path, names, "target", choices.target, earlier_table)
    if choices.source is None and choices.target is None and (first is None or last is None):
        first = last = None
    id_column = None
    if has_ids:
        named_id_column = choices.id if choices.id in names else None
        id_column = find_column(path, names, "id", named_id_column, earlier_table)
    remaining = [name for name in names if name not in (*used, first, last, id_column)]
    is_first_found_by_place = first is None
    if first is None and remaining:
        first = remaining.pop(0)
    if last is None and remaining:
        last = remaining.pop(0)
    if first is None or last is None:
        remedy = "Columns are separated by commas in .csv, by tabs in .tsv and .txt."
        raise InputError(str(path), "two columns, source and target", format_list(names), remedy)
    if is_first_found_by_place:
        _refuse_row_numbers(path, first, "--source and --target")
    return first, last


def _ends_by_type(
    source: Source,
    choices: UserChoices,
    earlier_table: TableSchema | None,
    end_types: Sequence[str],
) -> tuple[str, str] | None:
    """The columns of both ends, where they are called after the types of the nodes.

    None: the ends are not of two types, or no two columns are called after them.
    """
    if len({*end_types}) != 2:
        return None
    names = source.names
    by_type = [called_after(node_type, names) for node_type in end_types]
    ends = list(by_type)
    for position, purpose in enumerate(("source", "target")):
        column = getattr(choices, purpose) or _earlier_column(earlier_table, purpose)
        if column in names:
            ends[position] = column
    if len({*ends}) != 2:
        ends = by_type
    first, last = ends
    if first is None or last is None or first == last:
        return None
    return first, last


def _refuse_other_ends(
    source: Source, end_types: Sequence[str], taken: tuple[str, str], *, is_strict: bool
) -> None:
    """Refuse ends found by their places, where a column that is called after a type would be
    another end.

    Where it ``is_strict``, ends found by their places are always refused, as they may be of either
    type.
    """
    if len({*end_types}) != 2:
        return
    by_type = [called_after(node_type, source.names) for node_type in end_types]
    pairs = zip(by_type, taken, strict=True)
    is_another = any(column not in (None, end) for column, end in pairs)
    if not is_strict and not is_another:
        return
    missing = [
        node_type for node_type, column in zip(end_types, by_type, strict=True) if column is None
    ]
    types = " and ".join(end_types)
    expected = f"columns called as the types {types} are, or source and target"
    found = f"none for {' and '.join(missing or end_types)} among {format_list(source.names)}"
    remedy = "Name both: --source COLUMN --target COLUMN (in Python: source=, target=)."
    raise InputError(str(source.path), expected, found, remedy)


def called_after(node_type: str, names: Sequence[str]) -> str | None:
    """The column that is called as a type is.

    For driver: driver, else driver_id, driverId, driverid or id_driver.
    """
    if node_type in names:
        return node_type
    for spelling in spellings(node_type):
        for name in names:
            if plain(name) == spelling:
                return name
    return None


def find_column(
    path: Path,
    names: Sequence[str],
    purpose: str,
    chosen_column: str | None,
    earlier_table: TableSchema | None,
) -> str | None:
    """The column for a purpose; None: the table has none.

    What a person named comes first, then the column of the earlier table, then a column that is
    called as the purpose is, in any case.
    """
    if chosen_column is not None:
        require(path, names, [chosen_column], f"column for {purpose}")
        return chosen_column
    earlier_column = _earlier_column(earlier_table, purpose)
    if earlier_column in names:
        return earlier_column
    return next((name for name in names if name.lower() == purpose), None)


def _is_end_named(
    column: str, purpose: str, chosen_column: str | None, earlier_table: TableSchema | None
) -> bool:
    """Whether the column of an end was found by its name, rather than by its place."""
    earlier_column = _earlier_column(earlier_table, purpose)
    return column in (chosen_column, earlier_column) or column.lower() == purpose


def _earlier_column(earlier_table: TableSchema | None, purpose: str) -> str | None:
    """The column that an earlier table used for a purpose, by "id", "source" and so on."""
    if earlier_table is None:
        return None
    if purpose == "time":
        if earlier_table.time is None:
            return None
        # A time that a database puts together of several columns has no column.
        return earlier_table.time.column or None
    use: Use = getattr(earlier_table, purpose)
    return use.column if len(use.columns) == 1 else None


def _first_among(candidates: Iterable[str | None], names: Collection[str]) -> str | None:
    """The first candidate that is a column."""
    return next((name for name in candidates if name in names), None)


def _use(
    earlier_table: TableSchema | None,
    purpose: str,
    column: str | None,
    chosen_column: str | None,
    *,
    is_named: bool = False,
) -> Use:
    """The column that is used for a purpose, with where the choice comes from."""
    if column is None:
        return Use()
    if earlier_table is not None:
        earlier_use: Use = getattr(earlier_table, purpose)
        if earlier_use.columns == (column,):
            return earlier_use
    if column == chosen_column:
        return Use((column,), "said")
    if is_named or column.lower() == purpose:
        return Use((column,), reason=f"called {column}")
    return Use((column,), reason=_REASONS_OF_PLACES.get(purpose, f"called {column}"))


def _origin(is_said: bool) -> Origin:
    return "said" if is_said else "found"


def require(
    path: Path, names: Collection[str], wanted: Sequence[str], what: str, remedy: str = ""
) -> None:
    """Refuse a table without the wanted columns; the message says ``what`` they are for."""
    missing = [name for name in wanted if name not in names]
    if missing:
        expected = f"a {what} {format_list(missing)}"
        found = f"the columns {format_list(list(names))}"
        raise InputError(str(path), expected, found, remedy or suggest(missing[0], names))


def _refuse_row_numbers(path: Path, name: str, options: str) -> None:
    """Refuse a first column of row numbers, as pandas writes them, where ids should be."""
    if re.fullmatch(r"Unnamed: \d+", name):
        found = f"{shorten(name)}, row numbers of pandas"
        remedy = "Leave it out (pandas: read_csv(NAME, index_col=0)), or name the columns: "
        raise InputError(str(path), "ids in the first column", found, f"{remedy}{options}.")


def _table_in_schema(
    choices: UserChoices, earlier_table: TableSchema | None, path: Path
) -> TableSchema:
    """The table in the schema that a person gave; refused where there is none."""
    if earlier_table is None:
        location = location_in(choices.schema_path, ("tables",))
        remedy = "infomax info --schema writes it."
        raise InputError(location, f"the table {path}", "none for it", remedy)
    return earlier_table


def _names_of_lookups(table: TableSchema) -> set[str]:
    """What the values of lookups may be called that stand in place of the keys of a table."""
    return {name for key in table.keys for name in (key.table, "+".join(key.columns))}


def _refuse_missing_columns(
    choices: UserChoices, earlier_table: TableSchema, path: Path, header: Sequence[str]
) -> None:
    """Refuse a schema that names columns which the table does not have."""
    wanted: list[tuple[JsonPath, str]] = []
    for purpose in _USES:
        for name in getattr(earlier_table, purpose).columns:
            if (purpose, name) != ("weight", COUNT):
                wanted.append(((purpose,), name))
    if earlier_table.time is not None and earlier_table.time.column:
        wanted.append((("time",), earlier_table.time.column))
    for name, column in earlier_table.columns.items():
        is_lookup = name in _names_of_lookups(earlier_table)
        if column.role in ("feature", "label", "split") and not is_lookup:
            wanted.append((("columns", name), name))
    for location_keys, name in wanted:
        if name not in header:
            found = f"none among {format_list(list(header))}"
            expected = f"a column {shorten(name)} of {path}"
            location = schema_location(choices, earlier_table, *location_keys)
            raise InputError(location, expected, found, suggest(name, header))
    for name in earlier_table.with_role("split"):
        if not name.startswith(SPLIT):
            location = schema_location(choices, earlier_table, "columns", name)
            raise InputError(location, "a split to be called split:NAME", shorten(name))
