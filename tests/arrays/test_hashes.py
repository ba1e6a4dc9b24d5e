import hashlib
import zlib

import numpy as np
import pytest

from infomax.arrays import hashes


@pytest.mark.parametrize("size", [0, 1, 7, 8, 9, 16, 40])
def test_a_checksum_is_the_hash_of_the_crcs_of_pieces(tmp_path, monkeypatch, size):
    monkeypatch.setattr(hashes, "_PIECE", 8)
    data = bytes(range(size))
    (tmp_path / "file").write_bytes(data)
    pieces = np.array([zlib.crc32(data[first : first + 8]) for first in range(0, size, 8)], "<u4")
    assert hashes.checksum(tmp_path / "file") == hashlib.sha256(pieces.tobytes()).hexdigest()
