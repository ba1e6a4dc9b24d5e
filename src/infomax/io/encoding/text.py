"""Text and tags: their words are hashed into a fixed number of features."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.io.encoding import cells
from infomax.io.encoding.column import FeatureColumn, common_fields

if TYPE_CHECKING:
    from infomax.io.encoding.column_statistics import ColumnStatistics

WIDTH = 256
"""Features that the words of a text are hashed into. The inner product of two texts is off by about
1/16 of their lengths then (the square root of 1/256), and a text takes 1 kB per node where rows are
dense, as in a batch."""
BUCKETS = 4096
"""Buckets in which the documents of a word are counted: more than features, so that a rare word
seldom shares one with a frequent word; few enough to be read in a JSON file."""
WORD_BUCKETS = 1 << 16
"""Buckets that tell whether texts share a word: of 10,000 words, one in seven shares a bucket."""
LONGEST_COUNTED_WORD = 64
"""Bytes of a word from which it is never named as the most frequent one of a feature."""
_LOWER_CASE = bytes(
    ord(chr(byte).lower()) if chr(byte).isalnum() else ord(" ") for byte in range(128)
)
_LETTERS = _LOWER_CASE + bytes(range(128, 256))
"""For each byte of UTF-8: the letter in lower case, a space for signs; other bytes as they are."""


@dataclass(frozen=True, kw_only=True)
class TextColumn(FeatureColumn):
    """A column of text, or of lists of tokens; each row has length 1.

    A word is added to, or subtracted from, the feature that its hash names, with a weight that
    falls with the number of texts that have it.

    Attributes:
        documents: the number of texts.
        frequency: ``[BUCKETS]``, the number of texts with words whose hash falls into a bucket.
        shared_words: which buckets ``[WORD_BUCKETS]`` have words that several texts share, as
            `pack_bits` writes it; all other words are left out. Empty: no word is left out.
        words: ``[WIDTH]``, the most frequent word of each feature, or nothing where they are many.
    """

    types: ClassVar[tuple[str, ...]] = ("text", "tokens")
    documents: int
    frequency: tuple[int, ...]
    words: tuple[str, ...]
    shared_words: str = ""

    @classmethod
    def fit(cls, statistics: ColumnStatistics, *, raw: bool = False, note: str = "") -> Self:
        """Learn how many texts have each word."""
        statistics.count_words()
        column_type = "tokens" if statistics.column_type == "tokens" else "text"
        return cls(
            **common_fields(statistics, column_type, note),
            documents=statistics.documents,
            frequency=tuple(statistics.frequency.tolist()),
            words=tuple(statistics.most_frequent_words()),
            shared_words=pack_bits(statistics.shared_words),
        )

    @classmethod
    def from_learnt(cls, fields: dict[str, Any], learnt: dict[str, Any]) -> Self:
        """The column as `to_json` wrote it."""
        return cls(
            **fields,
            documents=int(learnt["documents"]),
            frequency=tuple(learnt["frequency"]),
            words=tuple(learnt.get("words", ())),
            shared_words=learnt.get("shared_words", ""),
        )

    @property
    def learnt(self) -> dict[str, Any]:
        """The numbers of texts, the most frequent words, and which words several texts share."""
        learnt: dict[str, Any] = {
            "documents": self.documents,
            "frequency": list(self.frequency),
            "words": list(self.words),
        }
        if self.shared_words:
            learnt["shared_words"] = self.shared_words
        return learnt

    @property
    def value_names(self) -> list[str]:
        """``NAME[0]``, ``NAME[1]``, ..."""
        return [f"{self.name}[{feature}]" for feature in range(WIDTH)]

    @property
    def value_parts(self) -> list[str]:
        """What the features are."""
        return ["hashed words"]

    def weights(self) -> NDArray[np.float64]:
        """The weight of a word by its bucket: ``log((1 + documents) / (1 + frequency)) + 1``."""
        frequency = np.array(self.frequency, np.float64)
        return np.asarray(np.log((1 + self.documents) / (1 + frequency)) + 1)

    def encode(self, values: Any) -> tuple[sparse.csr_array, NDArray[np.bool_]]:
        """The sums of the weights of the words of each text, and which texts are missing."""
        plain = cells.plain(values)
        words = Words(plain)
        signs = np.where(is_added(words.hashes), 1, -1)
        weights = self.weights()[words.hashes % BUCKETS] * signs
        if self.shared_words:
            weights *= unpack_bits(self.shared_words)[words.hashes % WORD_BUCKETS]
        block = words.sum_in_columns(weights, words.hashes % WIDTH, WIDTH)
        block.sort_indices()
        block.eliminate_zeros()

        # Each row is brought to length 1.
        squares = sparse.csr_array((block.data**2, block.indices, block.indptr), shape=block.shape)
        lengths = np.sqrt(squares @ np.ones(WIDTH))
        block.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(block.indptr))
        block.data = block.data.astype(np.float32)
        return block, ~cells.is_present(plain)

    def decode(self, features: NDArray[Any]) -> NDArray[Any]:
        """The most frequent words that agree with the features, the heaviest first, as one text.

        Hashing loses all words that share a feature with a more frequent one.
        """
        texts = np.empty(len(features), object)
        for row, entries in enumerate(features):
            heaviest_first = np.argsort(-np.abs(entries), kind="stable").tolist()
            words = [
                self.words[position]
                for position in heaviest_first
                if entries[position] and self.agrees(position, entries[position])
            ]
            texts[row] = " ".join(words)
        return texts

    def agrees(self, position: int, entry: float) -> bool:
        """Whether an entry has the sign of the most frequent word of its feature."""
        if position >= len(self.words) or not self.words[position]:
            return False
        return (entry > 0) == bool(is_added(hash_words([self.words[position].encode()]))[0])

    def describe(self, position: int, *, more: bool) -> str:
        """What more, or less, of a feature means, by its most frequent word."""
        if position >= len(self.words) or not self.words[position]:
            return super().describe(position, more=more)
        description = f"{self.name}: {self.words[position]}"
        has_word = self.agrees(position, 1.0 if more else -1.0)
        return description if has_word else f"less of {description}"


class Words:
    """The words of a plain column.

    Those of a text are its letters and digits in lower case, parted by all other signs; those of a
    list are its entries.

    Attributes:
        vocabulary: the different words, as UTF-8; one of them may be empty, and is in no row.
        starts: ``[n + 1]``, where the words of each row begin.
        codes: ``[w]``, which word of the vocabulary each is, row by row.
    """

    def __init__(self, values: Any) -> None:
        import pyarrow as pa
        from pyarrow import compute, types

        is_tokens = types.is_large_list(values.type)
        lists = values if is_tokens else split_words(cells.texts(values))
        lengths = cells.as_numpy(compute.list_value_length(lists), null=0)
        entries = cells.fill_text(lists.flatten().cast(pa.large_string())).dictionary_encode()
        codes = cells.as_numpy(entries.indices)
        self.vocabulary = [word.encode() for word in entries.dictionary.to_pylist()]
        is_word = np.ones(len(codes), bool)
        if b"" in self.vocabulary:
            is_word = codes != self.vocabulary.index(b"")
        self.starts = cells.offsets(is_word)[cells.offsets(lengths)]
        self.codes = codes[is_word]

    @cached_property
    def hashes(self) -> NDArray[np.uint32]:
        """A hash (BLAKE2b) of each word of the vocabulary."""
        return hash_words(self.vocabulary)

    def count(self, row_counts: NDArray[np.int64]) -> dict[bytes, int]:
        """How often each word is there, if each row ``[n]`` is; very long words are left out."""
        weights = np.repeat(row_counts, np.diff(self.starts))
        counts = np.bincount(self.codes, weights, len(self.vocabulary)).astype(np.int64).tolist()
        return {
            word: count
            for word, count in zip(self.vocabulary, counts, strict=True)
            if count and len(word) <= LONGEST_COUNTED_WORD
        }

    def sum_in_columns(
        self, weights: NDArray[Any], columns: NDArray[Any], width: int
    ) -> sparse.csr_array:
        """The sums ``[n, width]`` of the weights of the words in each row, by columns.

        Args:
            weights: the weight of each word of the vocabulary.
            columns: the column into which each word of the vocabulary is added.
            width: the number of columns.
        """
        # scipy takes less time where indices have 32 bits.
        index_type = sparse.get_index_dtype(maxval=len(self.codes))
        ones = np.ones(len(self.codes), weights.dtype)
        words_of_rows = sparse.csr_array(
            (ones, self.codes, self.starts.astype(index_type)),
            shape=(len(self.starts) - 1, len(self.vocabulary)),
        )
        one_per_word = np.arange(len(self.vocabulary) + 1, dtype=index_type)
        columns_of_words = sparse.csr_array(
            (weights, columns.astype(index_type), one_per_word),
            shape=(len(self.vocabulary), width),
        )
        return words_of_rows @ columns_of_words


def split_words(values: Any) -> Any:
    """Lists of the words of texts; some of the words are empty."""
    import pyarrow as pa
    from pyarrow import compute

    _, letters = cells.utf8(values)
    if letters.max(initial=0) > 127:
        is_ascii = cells.as_numpy(compute.string_is_ascii(values), null=True)
        has_other_letters = cells.as_mask(~is_ascii)
        lower = compute.utf8_lower(values.filter(has_other_letters))
        letters_alone = compute.replace_substring_regex(lower, r"[^\pL\pN]+", " ")
        values = compute.replace_with_mask(values, has_other_letters, letters_alone)
    starts, letters = cells.utf8(cells.fill_text(values))
    buffers = pa.py_buffer(starts), pa.py_buffer(letters.tobytes().translate(_LETTERS))
    return compute.split_pattern(pa.LargeStringArray.from_buffers(len(values), *buffers), " ")


def hash_words(words: Iterable[bytes]) -> NDArray[np.uint32]:
    """A hash (BLAKE2b) of each word ``[w]``."""
    return np.frombuffer(b"".join(map(_hash_word, words)), "<u4")


@lru_cache(1 << 18)
def _hash_word(word: bytes) -> bytes:
    return blake2b(word, digest_size=4).digest()


def is_added(hashes: NDArray[np.uint32]) -> NDArray[np.bool_]:
    """Whether words of these hashes are added to their feature, rather than subtracted."""
    return np.asarray(hashes >> 31 == 1)


def pack_bits(mask: NDArray[np.bool_] | None) -> str:
    """A mask as a short text; empty for None."""
    if mask is None:
        return ""
    return base64.b64encode(zlib.compress(np.packbits(mask).tobytes(), 9)).decode()


@lru_cache(64)
def unpack_bits(text: str) -> NDArray[np.bool_]:
    """The mask that `pack_bits` wrote."""
    packed = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
    return np.unpackbits(packed).astype(bool)
