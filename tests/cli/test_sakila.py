"""Sakila, a public database of a film rental, from the dump for Postgres: no option corrects a guess.

As a SQLite file, as a folder of CSV files, and on a Postgres server it goes through all commands, and the genre of a
film is told from its vector. `pytest -m slow -s tests/cli/test_sakila.py` prints the scores; it needs the data set
`relational/sakila`.
"""

from __future__ import annotations

import csv
import os
import pwd
import re
import shutil
import sqlite3
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import closing
from glob import glob
from pathlib import Path

import numpy as np
import pytest
from shell import infomax

from infomax import Embeddings
from infomax.evaluation.probes import score_splits, validated_probe
from infomax.evaluation.splits import encode_labels, random_splits

DATA = Path(os.environ.get("INFOMAX_DATA", ""), "relational", "sakila")
DOORS = ("sqlite", "csv", "postgres")
LEAST_ACCURACY = 60.0
"""In per cent, of genres of films, where 7 per cent have the most frequent one."""
INITDB = next(iter(sorted(glob("/usr/lib/postgresql/*/bin/initdb"))), None)
TYPES_OF_SQLITE = {"mpaa_rating": "text", "year": "integer", "text[]": "text"}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(3600),  # four minutes of processor time for each door
    pytest.mark.skipif(not DATA.is_dir(), reason="needs relational/sakila: set INFOMAX_DATA"),
]


def tables_of_dump() -> dict[str, tuple[list[str], list[list[str | None]]]]:
    """The columns and the rows of each table."""
    dump = (DATA / "data.sql").read_text(encoding="utf-8")
    pattern = re.compile(r"^COPY public\.(\w+) \((.*?)\) FROM stdin;\n(.*?)^\\\.$", re.S | re.M)
    tables = {}
    for name, header, lines in pattern.findall(dump):
        rows = [
            [None if cell == r"\N" else cell for cell in line.split("\t")]
            for line in lines.splitlines()
        ]
        tables[name] = (header.split(", "), rows)
    return tables


def definitions() -> dict[str, dict[str, str]]:
    """The columns of each table and their types, as the dump declares them."""
    schema = (DATA / "schema.sql").read_text(encoding="utf-8")
    types = {}
    for name, body in re.findall(r"^CREATE TABLE (\w+) \(\n(.*?)^\);", schema, re.S | re.M):
        columns = re.findall(r"^    (\w+) ([a-z_ \[\]]+?)(?:\(| DEFAULT| NOT|,|$)", body, re.M)
        types[name] = {column: TYPES_OF_SQLITE.get(kind, kind) for column, kind in columns}
    return types


def constraints(table: str) -> list[str]:
    """The keys of a table, as the dump declares them."""
    schema = (DATA / "schema.sql").read_text(encoding="utf-8")
    pattern = rf"ALTER TABLE ONLY (?:public\.)?{table}\s+ADD CONSTRAINT \w+ ((?:PRIMARY|FOREIGN).*?)(?: ON|;)"
    return re.findall(pattern, schema)


def sqlite_file(path: Path) -> Path:
    with closing(sqlite3.connect(path)) as connection:
        types = definitions()
        for name, (columns, rows) in tables_of_dump().items():
            kept = [
                index
                for index, column in enumerate(columns)
                if column not in ("fulltext", "picture")
            ]
            declared = [f"{columns[index]} {types[name][columns[index]]}" for index in kept]
            connection.execute(f"CREATE TABLE {name} ({', '.join(declared + constraints(name))})")
            marks = ", ".join("?" * len(kept))
            cells = ([row[index] for index in kept] for row in rows)
            connection.executemany(f"INSERT INTO {name} VALUES ({marks})", cells)
        connection.commit()
    return path


def csv_folder(path: Path) -> Path:
    path.mkdir()
    for name, (columns, rows) in tables_of_dump().items():
        with (path / f"{name}.csv").open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([columns, *rows])
    return path


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of Sakila on a server of its own; root cannot run one, so another user does."""
    if INITDB is None or shutil.which("psql") is None:
        pytest.skip("no Postgres server is installed")
    pytest.importorskip("adbc_driver_postgresql", reason="the driver of Postgres")
    programs = Path(INITDB).parent
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    prefix: list[str] = []
    if os.getuid() == 0:
        users = {user.pw_name for user in pwd.getpwall()}
        user = "postgres" if "postgres" in users else "nobody"
        shutil.chown(folder, user)
        prefix = ["setpriv", f"--reuid={user}", "--clear-groups", "--"]
    control = [*prefix, str(programs / "pg_ctl"), "-D", str(folder / "data")]
    settings = f"-c listen_addresses='' -c fsync=off -k {folder}"
    connect = ["psql", "-q", "-h", str(folder), "-U", "postgres"]
    initdb = [*prefix, INITDB, "-D", str(folder / "data"), "-U", "postgres", "-A", "trust"]

    def call(*command: str) -> None:
        subprocess.run(command, check=True, cwd=folder, capture_output=True, timeout=300)

    call(*initdb, "--no-sync")
    call(*control, "-w", "-l", str(folder / "log"), "-o", settings, "start")
    try:
        call(*connect, "-f", str(DATA / "schema.sql"))
        call(*connect, "-f", str(DATA / "data.sql"))
        yield f"postgresql:///postgres?host={folder}&user=postgres"
    finally:
        call(*control, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=DOORS)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Sakila by one of the doors."""
    if request.param == "postgres":
        address: str = request.getfixturevalue("server")
        return address
    if request.param == "sqlite":
        return str(sqlite_file(tmp_path / "sakila.db"))
    return str(csv_folder(tmp_path / "sakila"))


def genres() -> dict[int, str]:
    """The genre of each film."""
    tables = tables_of_dump()
    names = {row[0]: str(row[1]) for row in tables["category"][1]}
    return {int(str(film)): names[genre] for film, genre, _ in tables["film_category"][1]}


def accuracy(vectors: Path) -> tuple[float, float]:
    """Mean and deviation over ten random splits: 10 % to train on, 10 to choose, 80 to test."""
    embeddings = Embeddings.read(vectors)
    of_films = genres()
    labels = [of_films[film] for film in embeddings.ids.tolist()]
    codes, _ = encode_labels(np.array(labels, dtype=object))
    splits = random_splits(codes, seed=0, count=10)
    scores = score_splits(validated_probe, np.asarray(embeddings.vectors), codes, splits)
    values = [100 * score.value for score in scores]
    return float(np.mean(values)), float(np.std(values))


def run(*words: object) -> str:
    """The output of a command that ends well."""
    outcome = infomax(*words)
    assert outcome.code == 0, outcome.err
    return outcome.out + outcome.err


def test_sakila_is_decided_alike_by_all_doors(database: str) -> None:
    decided = run("info", database)
    assert "edges: film_actor, film_category, as they have two keys" in decided
    assert "last_update of 14 tables, as its name says when the row was last written" in decided

    # As of a day: films stay, later rentals go.
    as_of = run("info", database, "--as-of", "2005-08-01")
    counts = dict(re.findall(r"│ (\w+) +│ ([\d,]+) ", as_of))
    assert counts["film"] == "1,000"
    assert counts["rental"] == "10,176"


def test_sakila_goes_through_all_commands_and_tells_genres(database: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    run("train", database, "--type", "film", "--out", folder)
    neighbours = run("neighbours", folder, "film:ACADEMY DINOSAUR")
    assert "Nearest to 1 (ACADEMY DINOSAUR)" in neighbours

    questions = tmp_path / "questions.csv"
    questions.write_text("film_id,date\n1,2005-06-01\n1,2005-08-01\n2,2005-08-01\n")
    run("embed", folder, database, "--at", questions, "--out", tmp_path / "answers.parquet")
    updated = run("update", folder, database, "--out", tmp_path / "run2")
    assert "0 new nodes, 0 gone; 0 edges came, went or changed" in updated

    labels = tmp_path / "genres.csv"
    with labels.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("film_id", "genre"), *genres().items()])
    run("evaluate", folder, "--type", "film", "--labels", f"{labels}:genre", "--no-raw")

    run("embed", folder / "film", "--out", tmp_path / "vectors.parquet")
    mean, deviation = accuracy(tmp_path / "vectors.parquet")
    print(f"{database}: {mean:.1f} ± {deviation:.1f} % of the genres")
    assert mean >= LEAST_ACCURACY
