"""The words of texts, and their hashes."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.io.encoding.cells import offsets, texts, utf8

_LETTERS = bytes(ord(chr(at).lower()) if chr(at).isalnum() else 32 for at in range(128)) + bytes(
    range(128, 256)
)
_LONG = 64
WIDTH = 256
"""Features that the words of a text are hashed into. The inner product of two texts is then off by about 1/16 of their
lengths (the square root of 1/256), and a text takes 1 kB per node where rows are dense, as in a batch."""
BUCKETS = 4096
"""Buckets in which the documents of a word are counted: more than features, so that a rare word seldom shares one with
a frequent word; few enough to be read in a JSON file."""

WORD_BUCKETS = 1 << 16
"""Buckets that tell whether texts share a word: of 10,000 words, one in seven has no bucket alone."""


class Words:
    """The words of a plain column: of text in lower case, letters and digits; of lists their entries.

    ``starts`` ``[n + 1]`` says where those of each row begin, ``codes [w]`` which of the ``vocabulary`` each is.
    """

    def __init__(self, values: Any) -> None:
        import pyarrow as pa
        from pyarrow import compute, types

        lists = values if types.is_large_list(values.type) else _split(texts(values))
        lengths = compute.fill_null(compute.list_value_length(lists), 0).to_numpy(
            zero_copy_only=False
        )
        entries = compute.fill_null(lists.flatten().cast(pa.large_string()), "").dictionary_encode()
        codes = entries.indices.to_numpy()
        self.vocabulary = [word.encode() for word in entries.dictionary.to_pylist()]
        there = codes != (self.vocabulary.index(b"") if b"" in self.vocabulary else -1)
        self.starts = offsets(there)[offsets(lengths)]
        self.codes = codes[there]

    @cached_property
    def hashes(self) -> NDArray[np.uint32]:
        """A hash (BLAKE2b) of each word of the vocabulary."""
        return hashed(self.vocabulary)

    def counted(self, counts: NDArray[np.int64]) -> dict[bytes, int]:
        """How often each word is there, but for very long ones, if each row ``[n]`` is there so often."""
        weights = np.repeat(counts, np.diff(self.starts))
        often = np.bincount(self.codes, weights, len(self.vocabulary)).astype(np.int64).tolist()
        return {
            word: count
            for word, count in zip(self.vocabulary, often, strict=True)
            if count and len(word) <= _LONG
        }

    def added(self, weights: NDArray[Any], columns: NDArray[Any], width: int) -> sparse.csr_array:
        """The sums ``[n, width]`` of what each word of the vocabulary weighs, in the column that is its own."""
        shape = len(self.starts) - 1, len(self.vocabulary)
        short = sparse.get_index_dtype(
            maxval=len(self.codes)
        )  # scipy takes less time with short ones
        ones = np.ones(len(self.codes), weights.dtype)
        found = sparse.csr_array((ones, self.codes, self.starts.astype(short)), shape=shape)
        each = np.arange(len(self.vocabulary) + 1, dtype=short)
        return found @ sparse.csr_array(
            (weights, columns.astype(short), each), shape=(len(self.vocabulary), width)
        )


def _split(values: Any) -> Any:
    """Lists of the words of texts; some of the words are empty."""
    import pyarrow as pa
    from pyarrow import compute

    if utf8(values)[1].max(initial=0) > 127:
        odd = compute.fill_null(compute.invert(compute.string_is_ascii(values)), False)
        small = compute.replace_substring_regex(
            compute.utf8_lower(values.filter(odd)), r"[^\pL\pN]+", " "
        )
        values = compute.replace_with_mask(values, odd, small)
    starts, letters = utf8(compute.fill_null(values, ""))
    buffers = pa.py_buffer(starts), pa.py_buffer(letters.tobytes().translate(_LETTERS))
    return compute.split_pattern(pa.LargeStringArray.from_buffers(len(values), *buffers), " ")


def hashed(words: Iterable[bytes]) -> NDArray[np.uint32]:
    """A hash (BLAKE2b) of each word ``[w]``."""
    return np.frombuffer(b"".join(map(_hash, words)), "<u4")


@lru_cache(1 << 18)
def _hash(word: bytes) -> bytes:
    return blake2b(word, digest_size=4).digest()
