"""Which columns of an edge table and of a node table are what."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeAlias

from infomax.arrays.structural_features import StructuralFeatures, requested_structural_features
from infomax.errors import InputError, format_location, shorten, suggest
from infomax.io.choices import Choices
from infomax.io.column_names import (
    EdgeColumns,
    NodeColumns,
    as_tuple,
    format_list,
    keys,
    warn_unused,
)
from infomax.io.encoding.column_types import (
    ARGUMENT_OF_USE,
    FEATURE_TYPES,
    parse_column_choices,
)
from infomax.io.encoding.encoding import Encoding
from infomax.io.label_names import LABEL, spelled_labels
from infomax.io.schema.schema import ONLY_RELATION, Ends, Schema, TableSchema, Use
from infomax.io.schema.schema_file import location_in, read_schema
from infomax.io.text_format import AS_THE_EXTENSION_SAYS, TextFormat

SPLIT, GROUPS, NAME, TIME = "split:", "graph:name", "node:name", "node:time"
"""Columns and attributes of nodes whose names begin so are splits; others are the graph, the name and the
time of a node."""
COUNT = "count"
"""In place of a column of weights: every row of an edge table counts, and the weight of an edge is their number."""
MATRICES = (".npy", ".npz")
"""Files that hold features."""
EVENT = "event"
"""The type of the rows of an edge table that have times."""
TYPES = ("types", "edge_type", "node_type", "edges_as")
"""Choices that make a graph of several types of nodes."""
DATABASE = ("key", "pk", "table")
"""Choices about the tables of a database."""
OF_NODES = ("labels", "features", "matrix", "ignore", "id", "groups", "name", "time", "kinds")
"""Choices about the columns of node tables."""
_SAID = (*OF_NODES, "source", "target", "weight", "as_of", "obeys_schema", *TYPES, *DATABASE)


FeaturesOfType: TypeAlias = tuple[Sequence[str], Encoding | None, Sequence[float]]
"""The names of features, how they were made of columns, and what a gap in each becomes if they are plain numbers."""


@dataclass(frozen=True)
class Columns:
    """The columns that a person names; the others are found by their usual names, or by their places.

    ``features`` None: all columns of the node table that are nothing else. See `infomax.read_graph`.
    """

    id: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    labels: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    ignore: tuple[str, ...] = ()
    groups: str | None = None
    name: str | None = None
    time: str | None = None
    """The column of the times since when rows are there."""
    as_of: str | None = None
    """Rows of a later time are left out, and nothing is learnt from them."""
    matrix: Path | None = None
    """A file that holds the features, in place of columns."""
    schema: Schema | None = None
    """What the tables of an earlier graph, or of a schema that a person wrote, are."""
    obeys_schema: bool = False
    """Whether the schema is one that a person gave: nothing that it says is decided otherwise."""
    schema_path: Path | None = None
    """The file of the schema, for messages."""
    known_table: TableSchema | None = None
    """Of the schema, the table that these columns are of: its columns are taken where the table has them."""
    types: tuple[str, ...] = ()
    """The types of the nodes where edges begin, and where they end."""
    edge_type: str | None = None
    """The column of the edge table that names the relation of an edge."""
    node_type: str | None = None
    """The column of the node table that names the type of a node."""
    edges_as: str | None = None
    """The type of nodes that the rows of the edge table become."""
    of_types: Mapping[str, FeaturesOfType] = field(default_factory=dict)
    """The features of each type of an earlier graph."""
    numbered: bool = False
    """Whether the ids of nodes are the numbers of their rows, rather than those of the column ``id``."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """What columns that become features are; other columns' kinds are found from their values."""
    encoding: Encoding | None = None
    """What was learnt from the columns of an earlier graph, and makes the features of this one."""
    gaps: tuple[float, ...] = ()
    """What a gap in each feature becomes, where they are numbers as they are. Empty: gaps are refused."""
    among: tuple[str, ...] = ()
    """The other types of nodes of the graph: a column that is called after one holds its ids."""
    key: tuple[str, ...] = ()
    """Of a database: keys, such as results.driverId=drivers."""
    pk: tuple[str, ...] = ()
    """Of a database: primary keys, such as Teams.yearID+teamID."""
    table: tuple[str, ...] = ()
    """Of a database: what tables become, such as status=lookup."""
    text_format: TextFormat = AS_THE_EXTENSION_SAYS
    """How text tables are written."""
    learns: bool = True
    """Whether an encoding may be learnt; not where features are those of a model that has none."""

    @classmethod
    def of(
        cls,
        labels: str | Iterable[str] = (),
        features: str | Path | Sequence[str] | None = None,
        ignore: str | Iterable[str] = (),
        types: str | Sequence[str] = (),
        columns: Mapping[str, str] | Sequence[str] = (),
        schema: Schema | str | Path | None = None,
        **names: Any,
    ) -> Self:
        """The columns of these names; one name stands for a list of one, and one file for all features.

        ``columns`` says what a column is, as a mapping or as NAME=USE; of one of several types as TYPE.NAME.
        """
        ends = tuple(types.split(",") if isinstance(types, str) else types) if types else ()
        if len(ends) not in (0, 2):
            raise InputError(
                "types",
                "two, of the nodes where edges begin and end, as in user,item",
                format_list(ends),
            )
        for word in names:
            if word not in (*Choices.__annotations__, *DATABASE):
                known = ("features", *Choices.__annotations__)
                raise InputError(
                    f"argument {word}",
                    f"one of {', '.join(known)}",
                    "another",
                    suggest(word, known),
                )
        kinds = parse_column_choices(columns)
        for use, option in ARGUMENT_OF_USE.items():
            said = {name for name, kind in kinds.items() if kind == use}
            said |= set(as_tuple(names.get(option) or ()))
            owners = {name.partition(".")[0] for name in said if "." in name}
            if use != "time" and len(said) > 1 and len(owners) < len(said):
                expected = "one column, or one per type (TYPE.NAME)"
                raise InputError(option, expected, format_list(sorted(said)))
            names[option] = ",".join(sorted(said)) or None
        text_format = TextFormat.of(
            names.pop("delimiter", None), names.pop("header", None), names.pop("encoding", None)
        )
        for word in DATABASE:
            names[word] = as_tuple(names.get(word) or ())
        given = None if features is None else as_tuple(features)
        files = [Path(name) for name in given or () if Path(name).suffix.lower() in MATRICES]
        if files and len(given or ()) > 1:
            raise InputError(
                "features",
                f"names of columns, or one file {' or '.join(MATRICES)}",
                format_list(given or ()),
            )
        return cls(
            labels=(*as_tuple(labels), *(name for name, kind in kinds.items() if kind == "label")),
            features=None if files else given,
            ignore=(*as_tuple(ignore), *(name for name, kind in kinds.items() if kind == "ignore")),
            kinds={name: kind for name, kind in kinds.items() if kind in FEATURE_TYPES},
            matrix=files[0] if files else None,
            types=tuple(end.strip() for end in ends),
            text_format=text_format,
            **names,
        )._with_schema(schema)

    def _with_schema(self, schema: Schema | str | Path | None) -> Self:
        """The same choices, with a schema that a person gave, or the file of one."""
        if schema is None:
            return self
        path = Path(schema) if isinstance(schema, str | Path) else None
        if isinstance(schema, str | Path):
            schema = read_schema(schema)
        labels = self.labels
        if schema.is_database:  # which leaves out the edges of a key that is a label
            labels += tuple(
                f"{table.node_type}.{column}"
                for table in schema.tables.values()
                for column in table.with_role("label")
            )
        return dataclasses.replace(
            self, schema=schema, obeys_schema=True, schema_path=path, labels=labels
        )

    def like_types(self, types: Mapping[str, FeaturesOfType]) -> Self:
        """The columns that make the features of each type of an earlier graph."""
        word = next(
            (
                word
                for names, *_ in types.values()
                if names and (word := requested_structural_features(names))
            ),
            None,
        )
        return dataclasses.replace(self, features=(word,) if word else None, of_types=types)

    def like(
        self, names: Sequence[str], encoding: Encoding | None, gaps: Sequence[float] = ()
    ) -> Self:
        """The columns that make the features of these names, as they were learnt from those of an earlier graph."""
        used = names if encoding is None else [column.name for column in encoding.feature_columns]
        found = dataclasses.replace(self, features=tuple(used), encoding=encoding, learns=False)
        return dataclasses.replace(found, gaps=tuple(gaps))

    def keys(self, names: Iterable[str]) -> list[str]:
        """Those columns that by their names hold ids of nodes, unless features were chosen."""
        return keys(names, self.among) if self.features is None else []

    @property
    def structural_features(self) -> StructuralFeatures | None:
        """The features to make of the edges where a table has none; None: the default ones."""
        return None if self.features is None else requested_structural_features(self.features)

    @property
    def typed(self) -> bool:
        """Whether they make a graph of several types of nodes."""
        return any(getattr(self, word) for word in TYPES)

    def of_edge_table(self, ends: Ends | None = None) -> Self:
        """The same columns for the table of the edges of a relation, or for that of all edges."""
        known = None
        if self.schema is not None:
            known = self.schema.of_relation(ends) or self.schema.of_relation(ONLY_RELATION)
        return dataclasses.replace(self, known_table=known)

    def of_node_table(self, node_type: str) -> Self:
        """The same columns for the table of the nodes of a type."""
        known = None if self.schema is None else self.schema.of_type(node_type)
        return dataclasses.replace(self, known_table=known)

    def remembered(self, purpose: str) -> str | None:
        """The column that the known table uses for a purpose, by "id", "source" and so on."""
        known = self.known_table
        if known is None:
            return None
        if purpose == "time":
            return known.time.column or None if known.time is not None else None
        use: Use = getattr(known, {"edge_type": "relation"}.get(purpose, purpose))
        return use.column if len(use.columns) == 1 else None

    def as_before(self, *words: str) -> Self:
        """The same with the schema's choices about types (`TYPES`, or these words), unless some are made here."""
        if self.schema is None or self.typed:
            return self
        known = self.schema.type_columns
        choices: dict[str, Any] = {
            "types": known.ends or (),
            "edge_type": known.edge_type or None,
            "node_type": known.node_type or None,
            "edges_as": known.edges_as or None,
        }
        return dataclasses.replace(self, **{word: choices[word] for word in words or TYPES})

    def refuse(
        self, words: Sequence[str], expected: str, found: str = "", remedy: str = ""
    ) -> None:
        """Refuse these choices where they were made; by default the message shows what was chosen."""
        for word in words:
            given = getattr(self, word)
            # What a model was trained on may be positions or degrees, which are in no table.
            if given and not (word == "features" and self.structural_features):
                options = {"matrix": "features", "kinds": "columns", "obeys_schema": "schema"}
                where = options.get(word, word)
                given = "one" if given is True else format_list(as_tuple(given))
                raise InputError(where, expected, found or given, remedy)

    def refuse_others(self, allowed: Collection[str], expected: str) -> None:
        """Refuse all choices but those that are allowed."""
        self.refuse([word for word in _SAID if word not in allowed], expected)

    def refuse_other_types(self, where: str | Path, *, has_several_types: bool) -> None:
        """Refuse tables of one type of nodes where an earlier graph has several, and the other way round."""
        told = {True: "several types of nodes", False: "one type of nodes"}
        if (self.of_types and not has_several_types) or (
            has_several_types and self.features and not self.learns and not self.of_types
        ):
            raise InputError(
                str(where),
                f"tables of {told[not has_several_types]}, as the earlier graph has",
                told[has_several_types],
            )

    def refuse_schema_of_others(self, *, is_database: bool) -> None:
        """Refuse the schema of a database for other tables, and the other way round."""
        schema = self.schema
        if self.obeys_schema and schema is not None and schema.is_database != is_database:
            told = {True: "tables with keys, as a database has", False: "tables without keys"}
            where = location_in(self.schema_path, ("is_database",))
            raise InputError(where, f"the schema of {told[is_database]}", told[not is_database])

    def of_edges(self, path: Path, names: Sequence[str]) -> EdgeColumns:
        """The columns of source, target and weight: as named, else those of these names in any case.

        Without both names, source and target are the first two columns that are left.
        """
        source, target, weight, relation = (
            None if word == "weight" and self.counts(names) else self.find(path, names, word)
            for word in ("source", "target", "weight", "edge_type")
        )
        if self.source is None and self.target is None and (source is None or target is None):
            source = target = None
        own = self.find(path, names, "id") if self.edges_as else None
        left = [name for name in names if name not in (source, target, weight, relation, own)]
        ends = [left.pop(0) if end is None and left else end for end in (source, target)]
        if ends[0] is None or ends[1] is None:
            remedy = "Columns are separated by commas in .csv, by tabs in .tsv and .txt."
            raise InputError(
                str(path), "two columns, source and target", format_list(names), remedy
            )
        if source is None:
            _refuse_row_numbers(path, ends[0], "--source and --target")
        return EdgeColumns(ends[0], ends[1], weight, relation)

    def counts(self, names: Sequence[str]) -> bool:
        """Whether an edge weighs as much as it has rows: ``weight`` is "count", and no column is called so."""
        return (self.weight or self.remembered("weight")) == COUNT and COUNT not in names

    def warn_unused(self, path: Path, names: Sequence[str]) -> None:
        """Name the columns of an edge table that have no effect, unless an earlier graph has decided about them."""
        if self.edges_as or self.of_types or not self.learns:
            return
        chosen = self.of_edges(path, names)
        hint = (
            " If one holds weights: --weight COLUMN (in Python: weight=)."
            if chosen.weight is None
            else ""
        )
        rows = " To make a node of each row, with its columns: --edges-as NAME (edges_as=)."
        warn_unused(
            str(path), [name for name in names if name not in chosen], "edge columns", hint + rows
        )

    def names_ends(self, ends: Sequence[str]) -> bool:
        """Whether the columns of source and target were found by their names, rather than by their places."""
        pairs = zip(("source", "target"), ends, strict=True)
        return all(
            end in (getattr(self, word), self.remembered(word)) or end.lower() == word
            for word, end in pairs
        )

    def of_nodes(self, path: Path, names: Sequence[str]) -> NodeColumns:
        """The columns of the id (as named, else "id" in any case, else the first), labels, features and others.

        Without ``features`` they are all remaining columns, else the columns of these names; those that are made
        of the edges need not be there.
        """
        require(path, names, self.ignore, "column to ignore")
        require(path, names, tuple(self.kinds), "column whose kind was said")
        identifier = self.identifier(path, names)
        others = dict.fromkeys(name for name in names if name not in (*self.ignore, identifier))
        # One table is called as its file is: people.country.
        prefix = f"{path.name.partition('.')[0]}."
        spelled = spelled_labels(self.labels, {prefix[:-1]: others})
        labels = {}
        for name in spelled:
            is_qualified = name not in others and name.removeprefix(prefix) in others
            label = name.removeprefix(prefix) if is_qualified else name
            labels[label] = _label(path, others, label)
        taken = {*labels.values()}
        for name in others:
            if name.startswith(LABEL) and name not in taken:
                labels.setdefault(name.removeprefix(LABEL), name)
        splits = {name.removeprefix(SPLIT): name for name in others if name.startswith(SPLIT)}
        groups = GROUPS if GROUPS in others else None
        if self.groups is not None:
            groups = _label(path, others, self.groups, "column of groups")
        called = self.name_among(others)
        named = None if called is None else _label(path, others, called, "column of names")
        timed = self.time or next(
            (one for one in (TIME, self.remembered("time")) if one in others), None
        )
        time = None if timed is None else _label(path, others, timed, "column of times")
        found = NodeColumns(identifier, [], labels, splits, groups, named, time)
        if self.matrix is not None:
            return found
        if both := [
            name for name in self.kinds if name in (*labels.values(), *splits.values(), groups)
        ]:
            twice, remedy = (
                f"{self.kinds[both[0]]}, and a label, a split or the graphs as well",
                "Leave one out.",
            )
            raise InputError(format_location(path, column=both[0]), "one use", twice, remedy)
        if self.features is None:  # a column whose kind was said may be the name, too
            features = (others.keys() - found.annotations) | self.kinds.keys()
        else:
            features = self._features_there(path, others)
        ordered = (
            others if self.learns or self.features is None else self.features
        )  # as in an earlier graph
        return found._replace(features=[name for name in ordered if name in features])

    def identifier(self, path: Path, names: Sequence[str]) -> str:
        """The column of ids of a node table."""
        kept = [name for name in names if name not in self.ignore]
        if not kept:
            raise InputError(str(path), "a column of ids", "none that is not ignored")
        found = self.find(path, kept, "id")
        if found is None and not self.numbered:
            _refuse_row_numbers(path, kept[0], "--id COLUMN (in Python: id=)")
        return found or kept[0]

    def name_among(self, names: Collection[str]) -> str | None:
        """The column of names: as named, else one that is marked as such, or an earlier one."""
        return self.name or next(
            (one for one in (NAME, self.remembered("name")) if one in names), None
        )

    def find(self, path: Path, names: Sequence[str], word: str) -> str | None:
        """The column of the chosen name, else of an earlier or the usual one; None: there is none."""
        chosen, earlier = getattr(self, word), self.remembered(word)
        if chosen is not None:
            require(path, names, [chosen], f"column for {word}")
        elif earlier in names:
            chosen = earlier
        return chosen or next((name for name in names if name.lower() == word), None)

    def _features_there(self, path: Path, others: Collection[str]) -> set[str]:
        """The named features; none of them where they are made of the edges."""
        missing = [name for name in self.features or () if name not in others]
        if missing and self.structural_features:
            return set()
        require(
            path,
            others,
            missing,
            "feature column",
            "Add it; a cell may be empty." if self.encoding else "",
        )
        return {*(self.features or ())}


def _label(path: Path, others: Collection[str], name: str, what: str = "label column") -> str:
    """The column of a label by its name, with or without the prefix."""
    column = name if name in others else LABEL + name
    require(path, others, () if column in others else [name], what)
    return column


def require(
    path: Path, names: Collection[str], wanted: Sequence[str], what: str, remedy: str = ""
) -> None:
    """Refuse a table without the wanted columns; the message says ``what`` they are for."""
    if missing := [name for name in wanted if name not in names]:
        found = f"the columns {format_list(list(names))}"
        raise InputError(
            str(path),
            f"a {what} {format_list(missing)}",
            found,
            remedy or suggest(missing[0], names),
        )


def _refuse_row_numbers(path: Path, name: str, remedy: str) -> None:
    """Refuse row numbers that pandas has written to a table, and read as its first column, where ids should be."""
    if re.fullmatch(r"Unnamed: \d+", name):
        remedy = (
            f"Leave it out (pandas: read_csv(NAME, index_col=0)), or name the columns: {remedy}."
        )
        raise InputError(
            str(path), "ids in the first column", f"{shorten(name)}, row numbers of pandas", remedy
        )
