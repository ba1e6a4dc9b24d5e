"""What a person says about tables and their columns.

The options are never changed by what is found in the tables.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self, TypedDict

from infomax.arrays.scaling import Statistics
from infomax.arrays.structural_features import (
    StructuralFeatures,
    requested_structural_features,
    structural_features_named,
)
from infomax.errors import InputError, shorten, suggest
from infomax.io.column_names import LABEL, as_tuple, format_list, split_by_type
from infomax.io.encoding.column_types import (
    ARGUMENT_OF_USE,
    COLUMN_CHOICES,
    FEATURE_TYPES,
)
from infomax.io.encoding.encoding import Encoding
from infomax.io.features import MATRICES
from infomax.io.nodes import Nodes
from infomax.io.record import Record
from infomax.io.schema.schema import COUNT, Schema, TypeColumns, Use
from infomax.io.schema.schema_file import location_in, read_schema, with_edits_said
from infomax.io.text import AS_THE_EXTENSION_SAYS, TextFormat

CHOICES_OF_TYPES = ("types", "edge_type", "node_type", "edges_as")
"""Choices that make a graph of several types of nodes."""
CHOICES_OF_DATABASES = ("keys", "primary_keys", "table_roles")
"""Choices about the tables of a database."""
CHOICES_OF_NODES = (
    "labels",
    "features",
    "feature_file",
    "ignore",
    "id",
    "groups",
    "name",
    "time",
    "column_types",
)
"""Choices about the columns of node tables."""
_ALL_CHOICES = (
    *CHOICES_OF_NODES,
    "source",
    "target",
    "weight",
    "as_of",
    "given_schema",
    *CHOICES_OF_TYPES,
    *CHOICES_OF_DATABASES,
)
_OPTION_NAMES = {
    "feature_file": "features",
    "column_types": "columns",
    "given_schema": "schema",
    "keys": "key",
    "primary_keys": "pk",
    "table_roles": "table",
}
"""What a person calls a choice, where its field has another name."""


class Choices(TypedDict, total=False):
    """What the columns of tables are, where their names do not tell it; arguments of
    `infomax.read_graph` and others.

    Edge tables: the columns ``source`` and ``target``, else the first two; an optional ``weight``;
    a warning names other columns, which are not used. Node tables: the column ``id``, else the
    first; every other column becomes features by its kind, unless it is named in ``labels``: see
    `Graph.encoding`. A table of numbers is taken as it is. Features are stored sparse where less
    than a tenth of them is not zero. Without a node table the nodes are the ids of the edges in
    order of first appearance; without features they get positions in the graph.

    Text tables are UTF-8 with commas (.csv) or tabs (.tsv, .txt). Their first line names the
    columns; a first line of numbers only, or of two node ids, is refused, since an edge or a node
    would be lost. Ids are integers where all of them are written as integers, else text, exactly as
    written ("007" stays "007").

    Attributes:
        labels: names of the columns (GraphML: node attributes) that are labels; an empty cell means
            unlabelled. Columns that are called ``label:NAME`` are labels, and ``split:NAME``
            splits, without being named here.
        ignore: names of columns of the node table that are not read.
        id: the column of ids in the node table.
        source: the column of the edge table where edges begin.
        target: the column of the edge table where they end.
        weight: the column of their weights; ``"count"``: an edge weighs as much as it has rows.
        groups: the column of the node table that names the graph of each node, where there are
            several graphs.
        name: the column of the node table (GraphML: the attribute) that holds names, which are
            shown beside ids.
        time: the column of the node table that says since when a row is there; of several types
            ``TYPE.COLUMN``, once for each. Where only the edge table has it, its rows become nodes
            of the type ``event`` (see ``edges_as``).
        as_of: leave out rows of a later time than this, with their edges, as `Graph.as_of` does;
            encodings are learnt from the others.
        types: the types of the nodes where edges begin and where they end, as in ``"user,item"``.
        edge_type: the column of the edge table that names the relation of an edge: ``writes``, or
            with the types of its ends ``author.writes.paper``.
        node_type: the column of the node table that names the type of a node. A column that is
            empty for all nodes of a type is not a feature of these.
        edges_as: the type of nodes that the rows of the edge table become, with its other columns
            as their features. Of a folder of several types, the name of such a relation.
        columns: what columns of the node table are, by their names: number, boolean, category,
            date, text, tokens, name, label, id or ignore. Others are found from their values.
        schema: what all tables and columns are: a `Schema`, as ``graph.schema``, or the file of
            one, which ``infomax info GRAPH --schema FILE`` writes. Nothing is guessed then.
        delimiter: what separates the cells of text tables: one character, or comma, tab, semicolon,
            bar or space. With this, ``header`` or ``encoding``, files of any extension are read as
            text tables; where the extension tells no delimiter, it is the one of which the first
            line has most.
        header: False: text tables have no first line of names; columns are called column1, column2,
            ...
        encoding: the encoding of text tables, such as ``"latin-1"``.
    """

    labels: str | Sequence[str]
    ignore: str | Sequence[str]
    id: str | None
    source: str | None
    target: str | None
    weight: str | None
    groups: str | None
    name: str | None
    time: str | Sequence[str]
    as_of: str | None
    types: str | Sequence[str]
    edge_type: str | None
    node_type: str | None
    edges_as: str | None
    columns: Mapping[str, str] | Sequence[str]
    schema: Schema | str | Path | None
    delimiter: str | None
    header: bool | None
    encoding: str | None


@dataclass(frozen=True)
class LearntFeatures:
    """How the features of one type of nodes of an earlier graph were made, so that later rows get
    the same ones.

    Attributes:
        names: the names of the features.
        encoding: what was learnt of each column; None: features were numbers, and are as they were.
        gaps: what a missing number becomes in each feature, where there is no encoding. Empty: gaps
            are refused.
    """

    names: tuple[str, ...]
    encoding: Encoding | None = None
    gaps: tuple[float, ...] = ()

    @classmethod
    def of(cls, nodes: Nodes) -> Self:
        """How the features of some nodes were made.

        Numbers without an encoding have gaps filled by their means.
        """
        gaps: tuple[float, ...] = ()
        if nodes.encoding is None and not structural_features_named(nodes.feature_names):
            seen = nodes.splits.get("seen")
            statistics = (
                nodes.table.statistics if seen is None else Statistics.of(nodes.table[seen])
            )
            gaps = tuple(statistics.mean.tolist())
        return cls(nodes.feature_names, nodes.encoding, gaps)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that features are made of, in their order."""
        if self.encoding is None:
            return self.names
        return tuple(column.name for column in self.encoding.feature_columns)


@dataclass(frozen=True)
class UserChoices:
    """What a person says about tables; what is not said is found in them, or was decided for an
    earlier graph.

    Attributes:
        id: the column of ids; of several types such as paper.key,author.key. See `Choices`, as for
            the others.
        features: None: all columns of a node table that are nothing else. Empty: no features are
            read.
        feature_file: a file that holds the features, in place of columns.
        time: the column of times since when rows are there; of several types separated by commas.
        as_of: rows of a later time are left out, and nothing is learnt from them.
        types: the types of the nodes where edges begin, and where they end.
        column_types: what columns that become features are.
        keys: of a database, keys such as results.driverId=drivers.
        primary_keys: of a database, primary keys such as Teams.yearID+teamID.
        table_roles: of a database, what tables become, such as status=lookup.
        text_format: how text tables are written.
        given_schema: what all tables and columns are. Nothing that it says is decided otherwise.
        schema_path: the file of the given schema, for messages.
        like: the graph that tables are read like: its schema, its features and its encodings.
        attaches: whether the tables hold only new nodes of the graph that they are read like.
    """

    id: str | None = None
    source: str | None = None
    target: str | None = None
    weight: str | None = None
    labels: tuple[str, ...] = ()
    features: tuple[str, ...] | None = None
    feature_file: Path | None = None
    ignore: tuple[str, ...] = ()
    groups: str | None = None
    name: str | None = None
    time: str | None = None
    as_of: str | None = None
    types: tuple[str, ...] = ()
    edge_type: str | None = None
    node_type: str | None = None
    edges_as: str | None = None
    column_types: Mapping[str, str] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    table_roles: tuple[str, ...] = ()
    text_format: TextFormat = AS_THE_EXTENSION_SAYS
    given_schema: Schema | None = None
    schema_path: Path | None = None
    like: Record | None = None
    attaches: bool = False

    @classmethod
    def of(
        cls,
        labels: str | Iterable[str] = (),
        features: str | Path | Sequence[str] | None = None,
        ignore: str | Iterable[str] = (),
        types: str | Sequence[str] = (),
        columns: Mapping[str, str] | Sequence[str] = (),
        schema: Schema | str | Path | None = None,
        **options: Any,
    ) -> Self:
        """The choices of some options; one name stands for a list of one, and one file for all
        features.

        Args:
            labels: see `Choices`.
            features: names of columns, one file, or "degrees" or "positions".
            ignore: see `Choices`.
            types: see `Choices`.
            columns: what each column is, as a mapping or as NAME=USE; of one of several types as
                TYPE.NAME.
            schema: a schema, or the file of one.
            options: the other ones of `Choices`; of databases also key, pk and table.
        """
        end_types: tuple[str, ...] = ()
        if types:
            end_types = tuple(types.split(",") if isinstance(types, str) else types)
        if len(end_types) not in (0, 2):
            expected = "two, of the nodes where edges begin and end, as in user,item"
            raise InputError("types", expected, format_list(end_types))
        known_options = ("features", *Choices.__annotations__)
        for option in options:
            if option not in (*known_options, "key", "pk", "table"):
                expected = f"one of {', '.join(known_options)}"
                remedy = suggest(option, known_options)
                raise InputError(f"argument {option}", expected, "another", remedy)

        column_choices = _parse_column_choices(columns)
        _add_uses_of_columns(options, column_choices)
        text_format = TextFormat.of(
            options.pop("delimiter", None),
            options.pop("header", None),
            options.pop("encoding", None),
        )
        feature_names = None if features is None else as_tuple(features)
        files = [
            Path(name) for name in feature_names or () if Path(name).suffix.lower() in MATRICES
        ]
        if files and len(feature_names or ()) > 1:
            expected = f"names of columns, or one file {' or '.join(MATRICES)}"
            raise InputError("features", expected, format_list(feature_names or ()))

        label_columns = [name for name, use in column_choices.items() if use == "label"]
        ignored_columns = [name for name, use in column_choices.items() if use == "ignore"]
        choices = cls(
            labels=(*as_tuple(labels), *label_columns),
            features=None if files else feature_names,
            feature_file=files[0] if files else None,
            ignore=(*as_tuple(ignore), *ignored_columns),
            types=tuple(end_type.strip() for end_type in end_types),
            column_types={
                name: use for name, use in column_choices.items() if use in FEATURE_TYPES
            },
            keys=as_tuple(options.pop("key", None) or ()),
            primary_keys=as_tuple(options.pop("pk", None) or ()),
            table_roles=as_tuple(options.pop("table", None) or ()),
            text_format=text_format,
            **options,
        )
        return choices if schema is None else choices._obeying(schema)

    def _obeying(self, schema: Schema | str | Path) -> Self:
        """The same choices, and a schema that a person gave, or the file of one."""
        path = None
        if isinstance(schema, str | Path):
            path = Path(schema)
            schema = read_schema(schema)
        schema = with_edits_said(schema)
        labels = self.labels
        if schema.is_database:  # which leaves out the edges of a key that is a label
            for table in schema.tables.values():
                labels += tuple(f"{table.node_type}.{name}" for name in table.with_role("label"))
        return replace(self, given_schema=schema, schema_path=path, labels=labels)

    @property
    def obeys_schema(self) -> bool:
        """Whether a person gave the schema, so that nothing is found in the tables."""
        return self.given_schema is not None

    @cached_property
    def schema(self) -> Schema | None:
        """The schema by which tables are read: the given one, else that of the earlier graph."""
        if self.given_schema is not None or self.like is None:
            return self.given_schema
        if self.attaches and self.like.has_named_types:
            return _with_usual_names(self.like)
        return self.like.schema

    @property
    def learnt_types(self) -> tuple[str, ...]:
        """The types of the graph of several types whose features are made again; none otherwise."""
        if self.like is None or self.features is not None:
            return ()
        return self.like.types

    def learnt_features(self, node_type: str) -> LearntFeatures | None:
        """How features of a type were made for the earlier graph; None where it has none."""
        if self.like is None or self.features is not None or node_type not in self.like.nodes:
            return None
        if self.feature_file is not None and not self.like.has_named_types:
            return None
        return LearntFeatures.of(self.like.nodes[node_type])

    @cached_property
    def structural_features(self) -> StructuralFeatures | None:
        """The features to make of the edges where a table has none; None: the default ones."""
        if self.features is not None:
            return requested_structural_features(self.features)
        if self.like is None or (self.feature_file is not None and not self.like.has_named_types):
            return None
        for nodes in self.like.nodes.values():
            if nodes.feature_names or not self.like.has_named_types:
                columns = LearntFeatures(nodes.feature_names, nodes.encoding).columns
                structural_features = requested_structural_features(columns)
                if structural_features is not None:
                    return structural_features
        return None

    def type_columns(self, names: Collection[str] = CHOICES_OF_TYPES) -> TypeColumns:
        """What tells types of nodes apart.

        Where a person says nothing, an earlier schema tells it, for the choices of these names.
        """
        if self.schema is not None and not any(getattr(self, name) for name in CHOICES_OF_TYPES):
            known = self.schema.type_columns
            return TypeColumns(
                known.ends if "types" in names else None,
                known.edge_type if "edge_type" in names else "",
                known.node_type if "node_type" in names else "",
                known.edges_as if "edges_as" in names else "",
            )
        ends = None
        if self.types:
            ends = (self.types[0], self.types[1])
        return TypeColumns(ends, self.edge_type or "", self.node_type or "", self.edges_as or "")

    def of_table(self, node_type: str, header: Sequence[str]) -> Self:
        """The choices that concern the node table of a type.

        A choice of TYPE.NAME goes before one of NAME.
        """
        names = {*header, *(name.removeprefix(LABEL) for name in header)}

        def in_table(words: Iterable[str]) -> dict[str, str]:
            """The columns of the table among those that were named, each with how it was named."""
            named: dict[str, str] = {}
            for word in words:
                name = word if word in names else word.removeprefix(f"{node_type}.")
                if name in names:
                    named[name] = word
            return named

        named_columns = in_table([*self.labels, *self.ignore, *self.column_types])
        named_by_type = {name for name, word in named_columns.items() if name != word}

        def chosen(words: Iterable[str]) -> dict[str, str]:
            return {
                name: word
                for name, word in in_table(words).items()
                if name != word or name not in named_by_type
            }

        features = self.features
        if features is not None and not requested_structural_features(features):
            features = tuple(in_table(features))
        uses: dict[str, Any] = {
            use: next(iter(in_table(split_by_type(getattr(self, use) or ""))), None)
            for use in ("id", "name", "time")
        }
        return replace(
            self,
            labels=tuple(chosen(self.labels)),
            ignore=tuple(chosen(self.ignore)),
            features=features,
            groups=None,
            column_types={
                name: self.column_types[word] for name, word in chosen(self.column_types).items()
            },
            **uses,
        )

    def of_edge_table(self, header: Sequence[str]) -> Self:
        """The choices that concern an edge table; columns that it does not have are left out."""
        uses: dict[str, Any] = {}
        for use in ("source", "target", "weight"):
            column = getattr(self, use)
            uses[use] = column if column in header or (use, column) == ("weight", COUNT) else None
        return replace(self, **uses)

    def refuse(
        self, names: Sequence[str], expected: str, found: str = "", remedy: str = ""
    ) -> None:
        """Refuse the choices of these names where they were made.

        The message shows what was chosen, unless ``found`` says something else.
        """
        for name in names:
            choice = getattr(self, name)
            # What a model was trained on may be positions or degrees, which are in no table.
            if not choice or (name == "features" and self.structural_features):
                continue
            shown = "one" if isinstance(choice, Schema) else format_list(as_tuple(choice))
            raise InputError(_OPTION_NAMES.get(name, name), expected, found or shown, remedy)

    def refuse_others(self, allowed: Collection[str], expected: str) -> None:
        """Refuse all choices but those that are allowed."""
        self.refuse([name for name in _ALL_CHOICES if name not in allowed], expected)

    def refuse_other_types(self, location: str | Path, *, has_several_types: bool) -> None:
        """Refuse tables of one type of nodes where an earlier graph has several, and vice versa."""
        if self.like is None or self.features is not None:
            return
        is_alike = has_several_types == bool(self.like.has_named_types)
        if is_alike or (has_several_types and self.feature_file is not None):
            return
        descriptions = {True: "several types of nodes", False: "one type of nodes"}
        expected = f"tables of {descriptions[not has_several_types]}, as the earlier graph has"
        raise InputError(str(location), expected, descriptions[has_several_types])

    def refuse_schema_of_others(self, *, is_database: bool) -> None:
        """Refuse the schema of a database for other tables, and the other way round."""
        schema = self.given_schema
        if schema is not None and schema.is_database != is_database:
            descriptions = {
                True: "tables with keys, as a database has",
                False: "tables without keys",
            }
            location = location_in(self.schema_path, ("is_database",))
            expected = f"the schema of {descriptions[is_database]}"
            raise InputError(location, expected, descriptions[not is_database])


def _add_uses_of_columns(options: dict[str, Any], column_choices: Mapping[str, str]) -> None:
    """Add the uses of columns to the options: a person may say id=x, or columns={x: id}."""
    for use, option in ARGUMENT_OF_USE.items():
        names = {name for name, chosen_use in column_choices.items() if chosen_use == use}
        names |= set(as_tuple(options.get(option) or ()))
        types = {name.partition(".")[0] for name in names if "." in name}
        if use != "time" and len(names) > 1 and len(types) < len(names):
            expected = "one column, or one per type (TYPE.NAME)"
            raise InputError(option, expected, format_list(sorted(names)))
        options[option] = ",".join(sorted(names)) or None


def reading_like(
    choices: UserChoices, earlier: Record | None, directed: bool | None
) -> tuple[UserChoices, bool | None]:
    """The choices that read tables like an earlier graph, and whether edges have directions."""
    if earlier is None:
        return choices, directed
    choices.refuse(
        ("features", "column_types", "given_schema"),
        "none where features are those of another graph",
    )
    return replace(choices, like=earlier), earlier.directed if directed is None else directed


def reading_new_nodes(choices: UserChoices, known: Record | None) -> UserChoices:
    """The choices that read tables of new nodes of a known graph.

    If there is a known graph, its own choices cannot change.
    """
    if known is None:
        return choices
    decided = ("feature_file",) if known.has_named_types else CHOICES_OF_TYPES
    choices.refuse(
        (
            "labels",
            "ignore",
            "groups",
            "column_types",
            "as_of",
            "given_schema",
            *decided,
        ),
        "none where nodes are attached to a graph",
    )
    return replace(choices, like=known, attaches=True, features=None)


def _with_usual_names(known: Record) -> Schema:
    """The schema of a graph of several types.

    Where it has no column of names, names are in a column ``name``.
    """
    schema = known.schema or Schema()
    for node_type in known.types:
        table = schema.of_type(node_type)
        if table is None or schema.is_database or len(table.name.columns) != 1:
            table_name = schema.table_name(node_type) or node_type
            schema = schema.with_table(table_name, node_type=node_type, name=Use(("name",)))
    return schema


def _parse_column_choices(columns: Mapping[str, str] | str | Sequence[str]) -> dict[str, str]:
    """What a person said that columns are, by the name of the column.

    Args:
        columns: a mapping, or texts NAME=USE. All choices that are unknown are in one message.
    """
    uses: dict[str, str] = {}
    if isinstance(columns, Mapping):
        uses = {str(name): str(use) for name, use in columns.items()}
    else:
        for text in [columns] if isinstance(columns, str) else columns:
            # A name may have equals signs of its own.
            name, _, use = str(text).rpartition("=")
            uses[name] = use

    # A schema says ignored, the options say ignore: each is understood by both.
    for name, use in uses.items():
        if use == "ignored":
            uses[name] = "ignore"

    unknown_uses = {
        name: use for name, use in uses.items() if use not in COLUMN_CHOICES or not name
    }
    if unknown_uses:
        texts = [f"{name}={use}".removeprefix("=") for name, use in unknown_uses.items()]
        remedy = suggest(next(iter(unknown_uses.values())), COLUMN_CHOICES)
        expected = f"NAME=USE, with one of {', '.join(COLUMN_CHOICES)}"
        raise InputError("columns", expected, ", ".join(map(shorten, texts)), remedy)
    return uses
