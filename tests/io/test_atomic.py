import errno
import os
from pathlib import Path

import pytest

from infomax.errors import InputError
from infomax.io import atomic
from infomax.io.atomic import check_place, make_folder, remove_leftovers, replacing


def test_a_block_that_ends_well_leaves_the_file_alone_in_its_folder(tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    target.write_text("old")
    with replacing(target) as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".csv"
        assert temporary.name.startswith(".")
        temporary.write_text("new")
        assert target.read_text() == "old"
    assert target.read_text() == "new"
    assert list(tmp_path.iterdir()) == [target]


def test_the_file_is_as_readable_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "plain").touch()
    with replacing(tmp_path / "a.csv") as temporary:
        temporary.write_text("x")
    assert (tmp_path / "a.csv").stat().st_mode == (tmp_path / "plain").stat().st_mode


@pytest.mark.parametrize("fault", [RuntimeError, KeyboardInterrupt])
def test_a_block_that_fails_changes_nothing(tmp_path: Path, fault: type[BaseException]) -> None:
    target = tmp_path / "a.csv"
    target.write_text("old")

    def write() -> None:
        with replacing(target) as temporary:
            temporary.write_text("half")
            raise fault

    with pytest.raises(fault):
        write()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_fault_while_writing_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    message = r"a\.csv: .* found No space left on device\. Choose another place"
    with pytest.raises(InputError, match=message), replacing(tmp_path / "a.csv"):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nowhere/a.csv", "No such file or directory. Make the folder first: .*/nowhere.$"),
        ("file/a.csv", "Not a directory. Choose another place.$"),
        ("folder", "a folder of that name. Choose another place.$"),
    ],
)
def test_a_place_that_cannot_be_written_is_an_input_error(
    tmp_path: Path, name: str, message: str
) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match=message), replacing(tmp_path / name):
        pytest.fail("the block must not run")
    with pytest.raises(InputError, match=message):
        check_place(tmp_path / name)


def test_a_folder_that_is_there_but_cannot_be_written_is_refused(tmp_path: Path) -> None:
    make_folder(tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InputError, match="/proc: expected a folder that can be written"):
        make_folder(Path("/proc"))  # not even by root


def leftover(path: Path) -> Path:
    leftover_file = path.with_name(f".{path.stem}-tmp-0123abcd{path.suffix}")
    leftover_file.write_text("half")
    return leftover_file


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    target = tmp_path / "a.csv"
    old_leftover, other_leftovers = (
        leftover(target),
        [leftover(tmp_path / "b.csv"), leftover(tmp_path / "a.tsv")],
    )
    remove_leftovers(target)
    assert not old_leftover.exists()
    assert all(path.exists() for path in other_leftovers)


def test_a_disk_that_fails_at_the_end_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(atomic.os, "fsync", fsync)
    with (
        pytest.raises(InputError, match="Input/output error"),
        replacing(tmp_path / "a.csv") as temporary,
    ):
        temporary.write_bytes(bytes(100))
    assert not list(tmp_path.iterdir())
