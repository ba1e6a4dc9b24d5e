"""What a person says of the columns of tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict

from infomax.io.schema.schema import Schema


class Choices(TypedDict, total=False):
    """What the columns of tables are, where their names do not tell it; arguments of `infomax.read_graph` and others.

    Edge tables: the columns ``source`` and ``target``, else the first two; an optional ``weight``; a
    warning names other columns, which are not used. Node tables: the column ``id``, else the first; every other column
    becomes features by its kind, unless it is named in ``labels``: see `Graph.encoding`. A table of numbers is taken as
    it is. Features are stored sparse where less than a tenth of them is not zero. Without a node table the nodes are
    the ids of the edges in order of first appearance; without features they get positions in the graph.

    Text tables are UTF-8 with commas (.csv) or tabs (.tsv, .txt). Their first line names the columns; a first line of
    numbers only, or of two node ids, is refused, since an edge or a node would be lost. Ids are integers where all of
    them are written as integers, else text, exactly as written ("007" stays "007").

    Attributes:
        labels: names of the columns (GraphML: node attributes) that are labels; an empty cell means unlabelled.
            Columns that are called ``label:NAME`` are labels, and ``split:NAME`` splits, without being named here.
        ignore: names of columns of the node table that are not read.
        id: the column of ids in the node table.
        source: the column of the edge table where edges begin.
        target: the column of the edge table where they end.
        weight: the column of their weights; ``"count"``: an edge weighs as much as it has rows.
        groups: the column of the node table that names the graph of each node, where there are several graphs.
        name: the column of the node table (GraphML: the attribute) that holds names, which are shown beside ids.
        time: the column of the node table that says since when a row is there; of several types ``TYPE.COLUMN``, once
            for each. Where only the edge table has it, its rows become nodes of the type ``event`` (see ``edges_as``).
        as_of: leave out rows of a later time than this, with their edges, as `Graph.as_of` does; encodings are learnt
            from the others.
        types: the types of the nodes where edges begin and where they end, as in ``"user,item"``.
        edge_type: the column of the edge table that names the relation of an edge: ``writes``, or with the types of its
            ends ``author.writes.paper``.
        node_type: the column of the node table that names the type of a node. A column that is empty for all nodes of
            a type is not a feature of these.
        edges_as: the type of nodes that the rows of the edge table become, with its other columns as their features. Of
            a folder of several types, the name of such a relation.
        columns: what columns of the node table are, by their names: number, boolean, category, date, text, tokens,
            name, label, id or ignore. Others are found from their values.
        schema: what all tables and columns are: a `Schema`, as ``graph.schema``, or the file of one, which
            ``infomax info GRAPH --schema FILE`` writes. Nothing is guessed then.
        delimiter: what separates the cells of text tables: one character, or comma, tab, semicolon, bar or space.
            With this, ``header`` or ``encoding``, files of any extension are read as text tables; where the extension
            tells no delimiter, it is the one of which the first line has most.
        header: False: text tables have no first line of names; columns are called column1, column2, ...
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
