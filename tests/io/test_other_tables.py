"""Tables of other kinds are refused with the line of pandas that makes them readable, and that line works."""

from __future__ import annotations

import re
from pathlib import Path

import pandas
import pytest

from infomax import read_graph
from infomax.errors import InputError
from infomax.io.prepare import prepare


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("edges.dat", b"source;target\na;b\nb;c\n"),
        ("edges.csv", b"source;target\na;b\nb;c\n"),
        ("edges.csv", b"source|target\na|b\nb|c\n"),
        ("edges.txt", b"source target\na b\nb c\n"),
        ("edges.csv", "source,target\né,b\nb,c\n".encode("latin-1")),
        ("edges.tsv", "source\ttarget\na\tb\nb\tc\n".encode("utf-16")),
        ("edges.csv", b"1,2\n2,3\n"),
        ("edges.csv", b"1,2,0.5,9\n2,3,0.25,8\n"),
        ("edges.txt", b"1 2\n2 3\n"),
        ("edges.dat", b"1::2::5::978300760\n2::3::4::978302109\n"),
        ("edges.csv", ("source,target,note\na,b," + 70_000 * "x" + "\nb,é,\n").encode("latin-1")),
        ("edges.dat", "1::2::é\n2::3::e\n".encode("latin-1")),
    ],
)
def test_the_line_makes_a_table_readable(
    tmp_path: Path, name: str, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("duckdb", reason="prepare sorts with it")
    (tmp_path / name).write_bytes(content)
    for read in (read_graph, lambda path: prepare(path, out=tmp_path / "g.graph")):
        with pytest.raises(InputError) as refused:
            read(tmp_path / name)
    monkeypatch.chdir(tmp_path)
    line = re.search(r"Python: (pandas\.read_csv\(.*\))", refused.value.remedy)
    assert line is not None, refused.value
    eval(line[1], {"pandas": pandas})
    target = re.findall(r'"([^"]*)"', line[1])[-1]
    graph = read_graph(tmp_path / target)
    assert (graph.num_nodes, graph.num_edges) == (3, 2)
    if content.startswith(b"1"):
        assert graph.ids.tolist() == [1, 2, 3]
