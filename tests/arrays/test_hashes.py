import numpy as np
import pytest

from infomax.arrays import hashes


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 40])
def test_what_is_written_has_the_checksum_of_the_file(tmp_path, monkeypatch, size):
    monkeypatch.setattr(hashes, "_PIECE", 8)
    data, path = np.arange(size, dtype=np.uint8), tmp_path / "file"
    with path.open("wb") as file:
        told = hashes.write_checked(file, [b"", *(data[first : first + 5] for first in range(0, size, 5))])
    assert path.read_bytes() == data.tobytes()
    assert told == hashes.checksum(path)
