"""The words of texts, and their hashes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.io.encoding.cells import Distinct, offsets, texts, utf8

_LETTERS = bytes(ord(chr(at).lower()) if chr(at).isalnum() else 32 for at in range(128)) + bytes(range(128, 256))
_MASKS = np.array([(1 << 8 * size) - 1 for size in range(9)], np.uint64)
_LONG, _ALL = 64, cast(Any, slice(None))


class KeptCells(NamedTuple):
    """Some rows of a column as they came, their different cells, and the words of these, if all are text."""

    values: Any
    distinct: Distinct
    words: Words | None


class Words:
    """The words of a plain column: of text in lower case, letters and digits; of lists their entries.

    ``starts`` ``[n + 1]`` says where those of each row begin.
    """

    def __init__(self, values: Any) -> None:
        import pyarrow as pa
        from pyarrow import compute, types

        if types.is_large_list(values.type):
            lengths = compute.fill_null(compute.list_value_length(values), 0).to_numpy(zero_copy_only=False)
            entries = compute.fill_null(values.flatten().cast(pa.large_string()), "").dictionary_encode()
            codes, words = entries.indices.to_numpy(), [word.encode() for word in entries.dictionary.to_pylist()]
            there = codes != (words.index(b"") if b"" in words else -1)
            self.starts, self.numbered = offsets(there)[offsets(lengths)], (codes[there], words)
            return
        values = texts(values)
        if utf8(values)[1].max(initial=0) > 127:
            odd = compute.fill_null(compute.invert(compute.string_is_ascii(values)), False)
            small = compute.replace_substring_regex(compute.utf8_lower(values.filter(odd)), r"[^\pL\pN]+", " ")
            values = compute.replace_with_mask(values, odd, small)
        values = compute.fill_null(values, "") if values.null_count else values
        starts = utf8(values)[0] + np.arange(len(values) + 1)
        # A space before each text, so that the words of two do not touch; and eight behind the last word.
        together = pa.LargeListArray.from_arrays(pa.array([0, len(values)], pa.int64()), values)
        joined = compute.binary_join(together, pa.scalar(" ", pa.large_string()))
        self.text = b"".join((b" ", utf8(joined)[1].data, b" " * 8)).translate(_LETTERS)
        spaces = np.flatnonzero(np.frombuffer(self.text, np.uint8)[:-7] == 32)
        begins, lengths = spaces[:-1], np.diff(spaces)
        begins += 1
        lengths -= 1
        there = lengths > 0
        self.begins, self.lengths = (begins, lengths) if there.all() else (begins[there], lengths[there])
        self.starts = np.searchsorted(self.begins, starts)

    @cached_property
    def numbered(self) -> tuple[NDArray[np.int32], list[bytes]]:
        """The position ``[w]`` of each word in a vocabulary, and the vocabulary.

        Eight bytes are one integer, which is found in a dictionary several times as fast as text is. So words are
        numbered by their first eight bytes, those that go on by that number and the next eight, and so on.
        """
        import pyarrow as pa

        text, begins, lengths = self.text, self.begins, self.lengths
        codes, words, rest = np.zeros(len(begins), np.int32), [b""], _ALL
        for at in range(0, _LONG, 8):
            eight = np.ndarray(len(text) - 7 - at, "S8", text, at, (1,))[begins[rest]].view("<u8")
            eight &= _MASKS.take(np.arange(at + 9) - at, mode="clip").take(lengths[rest], mode="clip")
            pieces = pa.array(eight).dictionary_encode()
            known, pairs = pieces.dictionary.to_numpy().astype("<u8").view("S8").tolist(), pieces
            if at:
                both = codes[rest].astype(np.int64) << 32 | pieces.indices.to_numpy()
                pairs = pa.array(both).dictionary_encode()
                known = [words[pair >> 32] + known[pair & 0xFFFFFFFF] for pair in pairs.dictionary.to_pylist()]
            codes[rest] = pairs.indices.to_numpy() + len(words)
            words += known
            rest = np.flatnonzero(lengths > at + 8)
            if not len(rest):
                break
        codes[rest] = np.arange(len(words), len(words) + len(rest))  # the longest, each by itself
        del self.text, self.begins, self.lengths
        return codes, words + [text[begins[at] : begins[at] + lengths[at]] for at in rest]

    @cached_property
    def hashes(self) -> NDArray[np.uint32]:
        """A hash (BLAKE2b) of each word of the vocabulary."""
        return hashed(self.numbered[1])

    def counted(self, counts: NDArray[np.int64]) -> dict[bytes, int]:
        """How often each word is there, but for very long ones, if each row ``[n]`` is there so often."""
        codes, words = self.numbered
        weights = None if (counts == 1).all() else np.repeat(counts, np.diff(self.starts))
        often = np.bincount(codes, weights, len(words)).astype(np.int64).tolist()
        return {word: count for word, count in zip(words, often, strict=True) if count and len(word) <= _LONG}

    def added(self, weights: NDArray[Any], columns: NDArray[Any], width: int) -> sparse.csr_array:
        """The sums ``[n, width]`` of what each word of the vocabulary weighs, in the column that is its own."""
        (codes, words), n = self.numbered, len(self.starts) - 1
        short = np.int32 if len(codes) < 2**31 else np.int64  # scipy takes less time with short ones
        starts, columns, each = self.starts.astype(short), columns.astype(short), np.arange(len(words) + 1, dtype=short)
        found = sparse.csr_array((np.ones(len(codes), weights.dtype), codes, starts), shape=(n, len(words)))
        return found @ sparse.csr_array((weights, columns, each), shape=(len(words), width))


def hashed(words: Iterable[bytes]) -> NDArray[np.uint32]:
    """A hash (BLAKE2b) of each word ``[w]``."""
    return np.frombuffer(b"".join(map(_hash, words)), "<u4")


@lru_cache(1 << 18)
def _hash(word: bytes) -> bytes:
    return blake2b(word, digest_size=4).digest()
