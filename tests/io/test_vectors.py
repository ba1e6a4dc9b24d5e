"""Embeddings: what is written comes back, and others can read it."""

import csv
import io
import tempfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray
from pyarrow import parquet

from infomax.embeddings import Embeddings
from infomax.errors import InputError
from infomax.io.vectors import check_extension

VECTORS = np.array([[0.1, -1e-30], [3.4028235e38, 1 / 3], [0, 16777216]], dtype=np.float32)
FORMATS = ["parquet", "npz", "csv", "tsv", "kv"]


def embeddings(ids: list[str] | list[int], vectors: NDArray[np.float32] = VECTORS) -> Embeddings:
    return Embeddings(vectors, np.array(ids, dtype=np.int64 if isinstance(ids[0], int) else object))


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("ids", [[7, -2, 30], ["007", "vim", "größe"]])
def test_what_is_saved_is_read_back(
    tmp_path: Path, suffix: str, ids: list[str] | list[int]
) -> None:
    path = tmp_path / f"e.{suffix}"
    embeddings(ids).save(path)
    back = Embeddings.read(path)
    assert back.ids.tolist() == ids
    assert back.ids.dtype == (np.int64 if isinstance(ids[0], int) else object)
    assert back.vectors.dtype == np.float32
    assert back.vectors.tolist() == VECTORS.tolist()
    assert list(tmp_path.iterdir()) == [path]


def test_npy_holds_vectors_alone(tmp_path: Path) -> None:
    embeddings(["a", "b", "c"]).save(tmp_path / "e.npy")
    assert np.load(tmp_path / "e.npy").tolist() == VECTORS.tolist()
    assert Embeddings.read(tmp_path / "e.npy").ids.tolist() == [0, 1, 2]


FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)


@settings(max_examples=80, deadline=None)
@given(
    ids=st.lists(st.text(min_size=1, max_size=6), min_size=1, max_size=6, unique=True),
    suffix=st.sampled_from(FORMATS),
    data=st.data(),
)
def test_any_text_and_any_number_come_back_unchanged(
    ids: list[str], suffix: str, data: st.DataObject
) -> None:
    vectors = data.draw(arrays(np.float32, (len(ids), 3), elements=FLOATS))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"e.{suffix}")
        cannot = {
            "kv": any(identifier.split() != [identifier] for identifier in ids),
            "npz": any(identifier.endswith("\0") for identifier in ids),
        }
        if cannot.get(suffix):
            with pytest.raises(InputError, match=r"e\.(kv|npz): .* ids .* parquet"):
                embeddings(ids, vectors).save(path)
            assert not path.exists()
            return
        embeddings(ids, vectors).save(path)
        back = Embeddings.read(path)
    # A text file does not tell the integer 7 from the text "7".
    assert list(map(str, back.ids)) == ids
    assert suffix in ("csv", "tsv", "kv") or back.ids.dtype == object
    assert np.array_equal(back.vectors, vectors)


def test_parquet_for_others(tmp_path: Path) -> None:
    embeddings(["a", "b", "c"]).save(tmp_path / "e.parquet")
    table = parquet.read_table(tmp_path / "e.parquet")
    assert table.schema.names == ["id", "vector"]
    assert table.schema.field("id").type == pa.string()
    assert table.schema.field("vector").type == pa.list_(pa.float32(), 2)
    assert table.to_pylist()[1] == {"id": "b", "vector": VECTORS[1].tolist()}
    embeddings([1, 2, 3]).save(tmp_path / "e.parquet")
    assert parquet.read_schema(tmp_path / "e.parquet").field("id").type == pa.int64()


def test_parquet_of_others_in_several_row_groups(tmp_path: Path) -> None:
    path, numbers = (
        tmp_path / "e.parquet",
        np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32),
    )
    for row in (None, 41):
        if row is not None:
            numbers[row, 1] = np.nan
        column = pa.FixedSizeListArray.from_arrays(pa.array(numbers.reshape(-1)), 3)
        parquet.write_table(
            pa.table({"id": np.arange(50), "vector": column}), path, row_group_size=7
        )
        if row is None:
            assert np.array_equal(Embeddings.read(path).vectors, numbers)
    with pytest.raises(InputError, match=r"row 42, column 2: expected a finite number"):
        Embeddings.read(path)


def test_npz_for_others(tmp_path: Path) -> None:
    embeddings(["a", "bc", "d"]).save(tmp_path / "e.npz")
    with np.load(tmp_path / "e.npz", allow_pickle=False) as archive:
        assert archive["ids"].tolist() == ["a", "bc", "d"]
        assert archive["vectors"].tolist() == VECTORS.tolist()


def test_text_for_others(tmp_path: Path) -> None:
    quoted = embeddings(['say "hi"', "x,y", "z\tz"])
    quoted.save(tmp_path / "e.csv")

    def written(name: str) -> str:
        """A file, with one number as older versions of numpy write it."""
        return (tmp_path / name).read_bytes().decode().replace("1.6777216e+07", "16777216.0")

    assert written("e.csv") == (
        '"id","d0","d1"\n"say ""hi""",0.1,-1e-30\n"x,y",3.4028235e+38,0.33333334\n"z\tz",0,16777216\n'
    )
    quoted.save(tmp_path / "e.tsv")
    with (tmp_path / "e.tsv").open(newline="") as file:
        assert [row[0] for row in csv.reader(file, delimiter="\t")] == ["id", *quoted.ids]
    embeddings(["x,y", "b", '"']).save(tmp_path / "e.kv")
    assert written("e.kv") == '3 2\nx,y 0.1 -1e-30\nb 3.4028235e+38 0.33333334\n" 0.0 16777216.0\n'


def test_what_cannot_be_written_leaves_no_file(tmp_path: Path) -> None:
    for identifier in ("New York", "", "a\u2028b"):
        with pytest.raises(
            InputError, match=r"e\.kv: expected ids without white space.* parquet, csv or tsv"
        ):
            embeddings(["a", identifier, "c"]).save(tmp_path / "e.kv")
    check_extension(tmp_path / "e.KV")
    with pytest.raises(InputError, match=r"e\.txt: expected one of .*\.kv"):
        check_extension(tmp_path / "e.txt")
    with pytest.raises(
        InputError, match=r'e\.xls: expected one of \.parquet, .*\.kv, found the extension "\.xls"'
    ):
        embeddings([1, 2, 3]).save(tmp_path / "e.xls")
    assert list(tmp_path.iterdir()) == []
    for suffix in ("npy", *FORMATS):
        with pytest.raises(InputError, match="No such file or directory"):
            embeddings([1, 2, 3]).save(tmp_path / "nowhere" / f"e.{suffix}")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("e.kv", b"", "e.kv, line 1: expected the number of vectors"),
        ("e.kv", b"a 1 2\n", "e.kv, line 1: expected the number of vectors"),
        ("e.kv", b"2 2\na 1 2\nb 1\n", "e.kv, line 3: expected an id and 2 finite numbers"),
        ("e.kv", b"2 2\na 1 2\nb 1 nan\n", "e.kv, line 3: expected an id and 2 finite numbers"),
        (
            "e.kv",
            b"3 2\na 1 2\nb 1 2\n\n",
            "e.kv: expected 3 vectors, as its first line says, found 2",
        ),
        ("e.kv", b"2 1\na 1\na 2\n", "e.kv, ids: expected each id once"),
        ("e.kv", b"1 1\n\xff 1\n", "e.kv, line 2: expected text in UTF-8"),
        ("e.csv", b"id\na\n", "e.csv: expected columns of numbers beside the ids"),
        (
            "e.csv",
            b"id,x,kind\na,1,red\n",
            'found "red". This is not a file that embed wrote: columns id, d0, d1, ...',
        ),
        ("e.npy", b"", "e.npy: expected an .npy file"),
        ("e.npy", b"\x93NUMPY\x01", "e.npy: expected an .npy file"),
        ("e.npz", b"PK\x03\x04", "e.npz: expected an npz file"),
        ("e.parquet", b"PAR1", "e.parquet: expected a parquet file"),
        (
            "e.xls",
            b"",
            'e.xls: expected one of .parquet, .npy, .npz, .csv, .tsv, .kv, found the extension ".xls"',
        ),
        ("e.csv", None, "e.csv: expected a file, found nothing of that name"),
    ],
)
def test_what_cannot_be_read_is_told(
    tmp_path: Path, name: str, content: bytes | None, message: str
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError) as caught:
        Embeddings.read(tmp_path / name)
    assert message in str(caught.value)


def test_other_arrays_are_told(tmp_path: Path) -> None:
    path = tmp_path / "e.npz"
    for ids, vectors, message in [
        (np.arange(2), np.zeros((3, 2)), "e.npz, ids: expected 3 ids"),
        (np.array([1, 1]), np.zeros((2, 2)), "e.npz, ids: expected each id once"),
        (np.arange(2), np.zeros(2), "e.npz: expected numbers of shape"),
        (np.arange(2), np.array([["a"], ["b"]]), "e.npz: expected numbers of shape"),
    ]:
        np.savez(path, ids=ids, vectors=vectors)
        with pytest.raises(InputError) as caught:
            Embeddings.read(path)
        assert message in str(caught.value)
    np.savez(path, edges=np.zeros((2, 1)))
    with pytest.raises(InputError, match="expected arrays ids and vectors"):
        Embeddings.read(path)
    parquet.write_table(pa.table({"id": [1], "vector": [[1.0]]}), tmp_path / "e.parquet")
    with pytest.raises(InputError, match=r"columns id and vector \(fixed-size list"):
        Embeddings.read(tmp_path / "e.parquet")


@pytest.mark.parametrize("suffix", ["parquet", "npy", "npz"])
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e39])
def test_a_number_that_is_not_finite_is_told_by_its_place(
    tmp_path: Path, suffix: str, value: float
) -> None:
    vectors = VECTORS.astype(np.float64)
    vectors[1, 0] = value
    path = tmp_path / f"e.{suffix}"
    if suffix == "parquet":
        column = pa.FixedSizeListArray.from_arrays(vectors.ravel(), 2)
        parquet.write_table(pa.table({"id": [7, 8, 9], "vector": column}), path)
    elif suffix == "npy":
        np.save(path, vectors)
    else:
        np.savez(path, ids=np.arange(3), vectors=vectors)
    with pytest.raises(InputError) as caught:
        Embeddings.read(path)
    assert str(caught.value).startswith(
        f"{path}, row 2, column 1: expected a finite number (32-bit float), found "
    )


def test_nothing_pickled_is_ever_loaded(tmp_path: Path) -> None:
    np.save(tmp_path / "e.npy", np.array([[{}]], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="plain array"):
        Embeddings.read(tmp_path / "e.npy")


def test_a_vector_by_its_id() -> None:
    by_text, by_number = embeddings(["a", "2", "c"]), embeddings([10, 20, 30])
    assert len(by_text) == 3
    assert by_text["c"].tolist() == VECTORS[2].tolist()
    assert by_text[2].tolist() == by_text["2"].tolist() == VECTORS[1].tolist()
    assert by_number["20"].tolist() == by_number[np.int64(20)].tolist() == VECTORS[1].tolist()
    with pytest.raises(
        InputError, match=r'expected one of 3 ids, found "numpi"\. Did you mean "numpy"'
    ):
        embeddings(["numpy", "scipy", "vim"])["numpi"]
    with pytest.raises(InputError, match='found "xyz"'):
        by_number["xyz"]


def test_neighbours_are_those_of_plain_cosine() -> None:
    vectors = np.random.default_rng(0).standard_normal((50, 8)).astype(np.float32)
    unit = vectors.astype(np.float64) / np.linalg.norm(
        vectors.astype(np.float64), axis=1, keepdims=True
    )
    cosine = unit @ unit[17]
    expected = [row for row in np.argsort(-cosine).tolist() if row != 17]
    found = embeddings(list(range(100, 150)), vectors).neighbours(117, k=10)
    assert [identifier for identifier, _ in found] == [100 + row for row in expected[:10]]
    assert [value for _, value in found] == pytest.approx(cosine[expected[:10]].tolist(), abs=1e-6)
    assert len(embeddings(list(range(50)), vectors).neighbours(3, k=1000)) == 49


def test_a_pair_stands_where_counting_random_pairs_puts_it() -> None:
    vectors = np.random.default_rng(3).normal(size=(50, 6)).astype(np.float32) + 1
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    pairs = (unit @ unit.T)[np.triu_indices(50, 1)]
    cosines = [-1.0, float(np.median(pairs)), 0.9, 1.0]
    sample = embeddings(list(range(50)), vectors)
    assert sample.standing(cosines).tolist() == pytest.approx(
        [(pairs < value).mean() for value in cosines], abs=1 / len(pairs)
    )
    assert sample.standing([]).shape == (0,)
    assert embeddings(["a"], vectors[:1]).standing([0.5]).tolist() == [0]
    many = embeddings(list(range(50)), vectors)
    sampled = many.standing(cosines, sampled_nodes=30).tolist()
    assert sampled == pytest.approx([(pairs < value).mean() for value in cosines], abs=0.1)
    assert sampled == many.standing(cosines, sampled_nodes=30).tolist()


def test_neighbours_tie_in_input_order_and_zero_is_like_nothing() -> None:
    rows = np.random.default_rng(1).standard_normal((2, 33)).astype(np.float32)
    vectors = np.vstack(
        [rows[0], 3 * rows[1], rows[1], np.zeros(33), rows[1] / 2, -rows[1]]
    ).astype(np.float32)
    found = embeddings(list("abcdef"), vectors).neighbours("c", k=9)
    names = [name for name, _ in found]
    assert names[:2] == ["b", "e"]
    assert names[-1] == "f"
    assert dict(found)["b"] == pytest.approx(1)
    assert dict(found)["d"] == 0
    assert embeddings(list("abcdef"), vectors).neighbours("d", k=9) == [
        (name, 0.0) for name in "abcef"
    ]


def test_huge_vectors_have_neighbours() -> None:
    found = embeddings(["a", "b"], np.full((2, 4), 3e38, dtype=np.float32)).neighbours("a")
    assert found == [("b", 1.0)]


@pytest.mark.parametrize("name", ["e.npy", "e.npz"])
def test_a_header_that_claims_more_than_there_is(tmp_path: Path, name: str) -> None:
    member = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        member, {"descr": "<f4", "fortran_order": False, "shape": (2**40, 512)}
    )
    path = tmp_path / name
    path.write_bytes(member.getvalue())
    if name == "e.npz":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("vectors.npy", member.getvalue())
    with pytest.raises(InputError, match=f"{name}"):
        Embeddings.read(path)
