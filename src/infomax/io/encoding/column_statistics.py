"""What is found of one column: its values, numbers, times and words, what it is, and what its features need."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.errors import shorten
from infomax.io.encoding import cells
from infomax.io.encoding.encoding import FINE, WIDTH, lists
from infomax.io.encoding.kinds import EXPECTED, FEATURES
from infomax.io.encoding.moments import Moments
from infomax.io.encoding.words import Words, hashed

DISTINCT = 100_000
"""Different values that are counted; a column with more of them is no category."""
RARE = 1000
"""A category's value has its own column if one row in so many has it, and two rows have; so columns are no more."""
WORDS = 1 << 18
"""Different words that are counted, to tell what a hashed column holds; of a text with more that is not told."""
LONG = 6
"""Mean number of words from which text is never a category or a name."""
_FORMS = 8
"""Ways in which a column may write two words: true, True, TRUE, ..."""
CODE = "it looks like an identifier or a code: --column {}; as numbers and dates are read 1200.50 and 2025-12-31"
OTHERS = {"category": ("ignore",), "id": ("category",)}
"""What a column that looks like a code may be instead, by what it is; an id is no feature already."""
_LEAKS = {"label", "labels", "target", "outcome"}

Fault: TypeAlias = tuple[str, str, str]
"""Where a cell is wrong, what is expected, and what is found there."""


class ColumnStatistics:
    """What is known of one column."""

    def __init__(self, name: str, kind: str, *, is_key: bool = False, mixed: bool = False) -> None:
        self.name, self.kind, self.is_key = name, kind, is_key
        self.least = 1.0 if mixed else 0.5
        """The share of numbers or dates from which the others are faults."""
        self.rows = self.missing = self.numeric = self.timed = self.documents = self.words = (
            self.separated
        ) = 0
        self.spaced = self.coded = 0
        self.counts: list[Any] | None = []
        self.pending = self.merged = 0
        self.numbers, self.times = Moments(), Moments()
        self.whole, self.is_list, self.is_coded, self.is_padded = True, False, False, False
        self.ranges = dict.fromkeys(("season", "weekday", "hour"), (math.inf, -math.inf))
        self.frequency, self.waiting = (
            np.zeros(FINE, np.int64),
            list[tuple[Words, NDArray[np.int64]]](),
        )
        self.vocabulary: Counter[bytes] | None = Counter()
        self.bad: dict[str, tuple[str, str]] = {}

    def add(self, values: Any, place: Callable[[int, str], str]) -> None:
        """Look at some rows of the column; for ``place`` see `Survey.add`."""
        is_list = cells.is_list(values.type)
        if is_list != self.is_list and self.rows > self.missing:  # the files of a table may differ
            told = "lists" if is_list else "single values"
            self.bad.setdefault("type", (place(0, self.name), f"{told}, unlike the rows before"))
            return
        try:
            distinct, rows = cells.distinct(values, not is_list and self.counts is not None)
        except cells.UnreadableError as error:
            self.bad.setdefault("type", (place(0, self.name), str(error.found)))
            return
        self.is_coded |= "dictionary" in str(values.type)
        self.whole &= "duration" not in str(values.type)  # seconds are no ids
        self.rows += len(values)
        self.missing += rows.null_count

        def remember(kind: str, wrong: NDArray[np.bool_]) -> None:
            """Remember the first cell that is not of the kind, where there are some."""
            if kind not in self.bad and wrong.any():
                at = int(np.argmax(wrong))
                self.bad[kind] = place(rows.index(at).as_py(), self.name), cells.shown(distinct, at)

        if is_list:
            self._lists(distinct, remember)
            return
        counts = np.bincount(rows.drop_null(), minlength=len(distinct))
        self._count(distinct, counts)
        wordy = cells.wordy(distinct)
        rest = np.ones(len(distinct), bool) if wordy else self._numbers(distinct, counts)
        remember("number", rest)
        rest = rest if wordy else self._times(distinct, counts, rest)
        remember("date", rest)
        if rest.any():
            self._words(distinct if rest.all() else distinct.filter(rest), counts[rest])

    def _count(self, distinct: Any, counts: NDArray[np.int64]) -> None:
        if self.counts is None or (len(distinct) > DISTINCT and self.kind != "category"):
            self.counts = None
            return
        self.counts.append((distinct, counts))
        self.pending += len(distinct)
        if self.pending > self.merged + DISTINCT:
            self.merge()

    def merge(self) -> None:
        """Count each different value once."""
        import pyarrow as pa

        if not self.counts:
            return
        values, kinds = (
            [values for values, _ in self.counts],
            {values.type for values, _ in self.counts},
        )
        if len(kinds) > 1 or pa.large_string() in kinds:  # 1.0 is 1
            values = list(map(cells.texts, values))
        together = pa.concat_arrays(values).dictionary_encode()
        counts = np.bincount(
            together.indices, np.concatenate([often for _, often in self.counts])
        ).astype(np.int64)
        self.counts = [(together.dictionary, counts)]
        self.pending = 0
        self.merged = len(counts)
        if self.merged > DISTINCT and self.kind != "category":
            self.counts = None

    def _numbers(self, distinct: Any, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        found, bad = cells.numbers(distinct)
        if bad.all():
            return bad
        good, self.is_padded = (
            found[~bad],
            self.is_padded or bool(cells.matched(distinct, r"^0\d").any()),
        )
        self.numbers.add(found, counts)
        self.numeric += int(counts[~bad].sum())
        self.whole = self.whole and bool((good == np.floor(good)).all())
        return bad

    def _times(
        self, distinct: Any, counts: NDArray[np.int64], rest: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        from pyarrow import compute

        if not rest.any():
            return rest
        when, bad = cells.times(distinct)
        there = ~bad & rest
        when, often = when.filter(there), counts[there]
        if len(when):
            at = cells.days(when)
            self.times.add(at, often)
            self.timed += int(often.sum())
            parts = {"season": compute.day_of_year, "weekday": compute.day, "hour": cells.hours}
            for name, (low, high) in self.ranges.items():
                if low >= high:
                    part = np.asarray(parts[name](when))
                    self.ranges[name] = min(low, float(part.min())), max(high, float(part.max()))
        return rest & bad

    def _words(self, values: Any, counts: NDArray[np.int64]) -> None:
        from pyarrow import types

        words = Words(values)
        self.documents += int(counts.sum())
        self.words += int(counts @ np.diff(words.starts))
        if types.is_large_string(values.type):
            self.separated += int(counts[cells.matched(values, "[|;]")].sum())
            self.spaced += int(
                counts[cells.matched(values, "[ ,]")].sum()
            )  # codes and addresses have none
            self.coded += int(
                counts[~cells.matched(values, r"^[^\x00-@\[-`{-\x7f]")].sum()
            )  # no letter first
        self.waiting.append((words, counts))
        if (
            self.counts is None
            or self.is_list
            or sum(words.starts[-1] for words, _ in self.waiting) > DISTINCT
        ):
            self.weigh()

    def weigh(self) -> None:
        """Count the texts that have a word, of each word: hashing takes long, and only text needs it."""
        for words, counts in self.waiting:
            found = words.added(
                np.ones(len(words.hashes), bool), words.hashes % FINE, FINE
            )  # each word once
            often = np.repeat(counts, np.diff(found.indptr))
            self.frequency += np.bincount(found.indices, often, FINE).astype(np.int64)
            if self.vocabulary is not None:
                self.vocabulary.update(words.counted(counts))
                self.vocabulary = self.vocabulary if len(self.vocabulary) <= WORDS else None
        self.waiting = []

    def frequent(self) -> list[str]:
        """The most frequent word of each hashed column, "" where there is none; nothing where words are too many."""
        counted, best = self.vocabulary or Counter(), [(0, b"")] * WIDTH
        for column, (word, count) in zip(
            (hashed(counted) % WIDTH).tolist(), counted.items(), strict=True
        ):
            if count >= -best[column][0]:
                best[column] = min((-count, word), best[column])
        return [word.decode() for _, word in best] if counted else []

    def _lists(self, present: Any, remember: Callable[[str, NDArray[np.bool_]], None]) -> None:
        from pyarrow import compute, types

        if (
            self.kind == "tokens"
            or types.is_large_string(present.type.value_type)
            or not len(present)
        ):
            self._words(present, np.ones(len(present), np.int64))
        else:
            if not self.numeric:
                self.numbers = Moments(max(1, int(compute.list_value_length(present)[0].as_py())))
            found, bad = lists(present, self.numbers.width)
            self.numbers.add(found, np.ones(len(found), np.int64))
            self.numeric += int((~np.isnan(found)).all(axis=1).sum())
            remember("numbers", bad)
        self.is_list = True

    def guess(self) -> str:
        """The kind of the column by its values."""
        present = self.rows - self.missing
        if not present:
            return "ignore"
        if self.is_list:
            return "tokens" if self.documents else "numbers"
        if self.is_key and self.numeric == present:
            return "id"
        words = (
            {value.lower() for value in self.values()}
            if self.counts and self.merged <= _FORMS
            else {""}
        )
        if any(words <= set(pair) for pair in cells.PAIRS):
            return "boolean"
        if self.is_coded and self.numeric == present:
            return "category"  # as pandas calls numbers that are codes
        # Mostly numbers, or mostly dates: the others are faults, which are told.
        if self.numeric >= self.least * present:
            return "number"
        if self.timed >= self.least * present:
            return "date"
        mean = self.words / max(1, self.documents)
        if 2 * self.separated >= present:
            return "tokens"
        is_word = (
            mean <= 1.5 or 2 * self.spaced < self.documents
        )  # or a code or an address: parts, and no spaces
        if mean >= LONG and not is_word:
            return "text"
        if self.tells_apart or (is_word and self.differs):
            named = re.search(r"names?$", self.name, re.IGNORECASE)
            return "name" if named else "id" if is_word else "text"
        return "category" if 2 * self.merged <= present or mean < 2 or is_word else "text"

    @property
    def tells_apart(self) -> bool:
        """Whether it has short values, nearly all of them different."""
        return self.differs and self.words < LONG * self.documents

    @property
    def letterless(self) -> bool:
        """Whether most of its values begin with no letter, as amounts, dates and codes do."""
        return 2 * self.coded > self.rows - self.missing

    @property
    def can_name(self) -> bool:
        """Whether it may name the nodes where no column is a name; amounts such as $1,200 may not."""
        return self.tells_apart and not self.letterless

    @property
    def differs(self) -> bool:
        """Whether nearly all values are different."""
        return self.counts is None or self.merged > 0.95 * (self.rows - self.missing)

    def values(self, least: float = 0) -> dict[str, int]:
        """Each different value that is there so often, and how often it is, the most frequent first."""
        if not self.counts:
            return {}
        values, counts = self.counts[0]
        often = counts >= least
        pairs = zip(
            cells.texts(values.filter(often)).to_pylist(), counts[often].tolist(), strict=True
        )
        return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))

    def learn(self, kind: str, raw: bool) -> dict[str, Any]:
        """What the features of the kind need; nothing for a single value, which would tell nothing.

        If all is ``raw``, numbers stay as they are.
        """
        same = self.distinct == 1 and not self.missing and not raw
        if kind not in FEATURES or same or self.rows == self.missing:
            return {}
        if kind in ("number", "numbers"):
            return self.numbers.as_they_are() if raw else self.numbers.scale()
        if kind == "boolean":
            share, values = Moments(), self.values()
            share.add(cells.truths(list(values))[0], np.array(list(values.values())))
            return share.as_they_are() if raw else share.scale()
        if kind == "category":
            often = self.frequent_values()
            return {"values": often, "rest": len(often) < self.merged}
        if kind == "date":
            parts = ["time", *(part for part, (low, high) in self.ranges.items() if low < high)]
            return {
                "parts": parts,
                **{name: of_all[0] for name, of_all in self.times.scale().items()},
            }
        self.weigh()
        return {
            "documents": self.documents,
            "frequency": self.frequency.tolist(),
            "words": self.frequent(),
        }

    def frequent_values(self) -> list[str]:
        """The values of a category that have columns of their own; of one that a person said, at least some."""
        often = list(self.values(max(2, self.rows / RARE)))
        return often if often or not self.kind else list(self.values(self.rows / RARE))

    @property
    def distinct(self) -> int | None:
        """The number of different values; None where they are too many, or lists."""
        return None if self.counts is None or self.is_list else self.merged

    def fault(self, kind: str) -> Fault | None:
        """The first cell that is not of the kind; None: there is none."""
        if "type" in self.bad:
            return self.bad["type"][0], EXPECTED["type"], self.bad["type"][1]
        present = self.rows - self.missing
        right = {"number": self.numeric, "numbers": self.numeric, "date": self.timed}.get(
            kind, present
        )
        if kind == "boolean":
            values = self.values()
            wrong = cells.truths(list(values))[1] if values else np.ones(1, bool)
            right = 0 if wrong.any() else present
            self.bad["boolean"] = (
                "",
                shorten(list(values)[int(np.argmax(wrong))]) if values else "many values",
            )
        if self.is_list and kind not in ("numbers", "tokens", "text", "ignore", "name"):
            right = -1
        if self.kind == "category" and self.counts and not self.frequent_values():
            found = f"{self.merged:,} different ones in {self.rows:,} rows"
            return f'column "{self.name}"', f"values that one row in {RARE:,} has, or more", found
        if right == present:
            return None
        where, found = self.bad.get(kind, ("", "lists" if self.is_list else "other values"))
        return where or f'column "{self.name}"', EXPECTED.get(kind, f"a {kind}"), found

    def note(self, kind: str, labels: Sequence[str]) -> str:
        """What looks wrong about the column; nothing where nothing does."""
        present = self.rows - self.missing
        if self.missing >= 0.99 * self.rows:
            return f"{100 * self.missing // max(1, self.rows)} % of its values are missing"
        if self.distinct == 1 and not self.missing:
            return "it has one value only, so it is no feature"
        huge = self.numbers.low[0] >= 2**24
        if kind == "number":
            counted = self.whole and present >= 10
            coded = self.is_padded or (
                counted and (huge or self.distinct is None or self.distinct > 0.99 * present)
            )
        else:
            coded = self.letterless or (kind == "id" and self.words > 1.5 * self.documents)
        if coded and not self.kind and not self.is_key:
            others = OTHERS.get(kind, ("ignore", "category"))
            return CODE.format(", or ".join(f"{self.name}={other}" for other in others))
        return (
            "by its name it may tell a label"
            if kind in FEATURES and tells_label(self.name, labels)
            else ""
        )


def tells_label(name: str, labels: Sequence[str]) -> bool:
    """Whether a column that is no label is called like one, or after one of the labels."""
    return not set(re.split(r"[^a-z0-9]+", name.lower())).isdisjoint(
        {*_LEAKS, *map(str.lower, labels)}
    )
