"""Text and tags: their words are hashed into a fixed number of features."""

from __future__ import annotations

import base64
import zlib
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from infomax.io.encoding import cells
from infomax.io.encoding.column import FeatureColumn, described
from infomax.io.encoding.column_statistics import ColumnStatistics
from infomax.io.encoding.words import BUCKETS, WIDTH, WORD_BUCKETS, Words, hashed


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
            **described(statistics, column_type, note),
            documents=statistics.documents,
            frequency=tuple(statistics.frequency.tolist()),
            words=tuple(statistics.most_frequent_words()),
            shared_words=pack_bits(statistics.shared_words),
        )

    @classmethod
    def from_learnt(cls, described: dict[str, Any], learnt: dict[str, Any]) -> Self:
        """The column as `to_json` wrote it."""
        return cls(
            **described,
            documents=int(learnt["documents"]),
            frequency=tuple(learnt["frequency"]),
            words=tuple(learnt.get("words", ())),
            shared_words=learnt.get("shared_words", ""),
        )

    @property
    def learnt(self) -> dict[str, Any]:
        """The numbers of texts, the most frequent words, and which words several texts share."""
        learnt = {
            "documents": self.documents,
            "frequency": list(self.frequency),
            "words": list(self.words),
        }
        return {**learnt, "shared_words": self.shared_words} if self.shared_words else learnt

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
        signs = np.where(words.hashes >> 31, 1, -1)
        entries = self.weights()[words.hashes % BUCKETS] * signs
        if self.shared_words:
            entries *= unpack_bits(self.shared_words)[words.hashes % WORD_BUCKETS]
        block = words.added(entries, words.hashes % WIDTH, WIDTH)
        block.sort_indices()
        block.eliminate_zeros()

        # Each row is brought to length 1.
        squares = sparse.csr_array((block.data**2, block.indices, block.indptr), shape=block.shape)
        lengths = np.sqrt(squares @ np.ones(WIDTH))
        block.data /= np.repeat(np.where(lengths > 0, lengths, 1), np.diff(block.indptr))
        block.data = block.data.astype(np.float32)
        return block, plain.is_null().to_numpy(zero_copy_only=False)

    def decode(self, features: NDArray[Any]) -> NDArray[Any]:
        """The most frequent words that agree with the features, the heaviest first, as one text.

        Hashing loses all words that share a feature with a more frequent one.
        """
        texts = np.empty(len(features), object)
        for row, entries in enumerate(features):
            order = np.argsort(-np.abs(entries), kind="stable")
            positions = [int(at) for at in order if entries[at] and self.agrees(at, entries[at])]
            texts[row] = " ".join(self.words[position] for position in positions)
        return texts

    def agrees(self, position: int, entry: float) -> bool:
        """Whether an entry has the sign of the most frequent word of its feature."""
        if position >= len(self.words) or not self.words[position]:
            return False
        is_added = bool(hashed([self.words[position].encode()])[0] >> 31)
        return (entry > 0) == is_added

    def describe(self, position: int, *, more: bool) -> str:
        """What more, or less, of a feature means, by its most frequent word."""
        if position >= len(self.words) or not self.words[position]:
            return super().describe(position, more=more)
        told = f"{self.name}: {self.words[position]}"
        return told if self.agrees(position, 1.0 if more else -1.0) else f"less of {told}"


def pack_bits(mask: NDArray[np.bool_] | None) -> str:
    """A mask as a short text; nothing for None."""
    if mask is None:
        return ""
    return base64.b64encode(zlib.compress(np.packbits(mask).tobytes(), 9)).decode()


@lru_cache(64)
def unpack_bits(text: str) -> NDArray[np.bool_]:
    """The mask that `pack_bits` wrote."""
    packed = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
    return np.unpackbits(packed).astype(bool)
