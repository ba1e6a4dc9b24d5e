"""What is found in the cells of one column: numbers, times, words, and how often each value is there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.io.encoding import cells
from infomax.io.encoding.date_statistics import DateStatistics
from infomax.io.encoding.moments import Moments
from infomax.io.encoding.words import BUCKETS, WIDTH, WORD_BUCKETS, Words, hashed
from infomax.io.encoding.written_dates import DateOrder, are_numbers_alone

MOST_DISTINCT = 100_000
"""Different values that are counted; a column with more of them is no category."""
RARE_SHARE = 1000
"""A category's value has its own feature if one row in so many has it; so features are no more."""
DIFFERENT_TITLES = 0.8
"""Share of different texts from which short ones may be titles: 0.93 of Chinook's tracks differ."""
LEAST_ROWS_OF_A_VALUE = 2
"""Rows that share a word or a value from which it is a feature: what one row has tells it from all others alike."""
LEAST_SHARE_OF_SHARED_WORDS = 0.01
"""Where a smaller share of words is shared, texts are no features."""
LEAST_ROWS_TO_TELL = 20
"""In fewer rows than this, words and texts may all differ by chance."""
PHONE = r"^[+(]?\d[\d\s()./+-]{5,}\d( ?(x|ext\.?) ?\d+)?$"
"""What a number of a phone or a fax looks like: groups of digits."""
MOST_WORDS = 1 << 18
"""Different words that are counted, to tell what a hashed feature holds; of a text with more that is not told."""
MANY_WORDS = 6
"""Mean number of words from which text is never a category or a name."""
LocationOf: TypeAlias = Callable[[int, str], str]
"""Names the place of a row, by its number in a block, and of a column."""


class ColumnStatistics:
    """What is known of the cells of one column.

    Attributes:
        said_type: the column type that a person said; "" where it is found from the cells.
        column_type: the one that was decided, once it is.
        is_key: whether the column is called after other nodes.
        rows, missing: the number of rows, and of those that have nothing in the column.
        number_cells: how many cells are numbers.
        too_large_cells: how many cells are numbers that float32 cannot hold.
        documents, words: how many cells are neither, and how many words these have.
        separated, spaced, letterless_cells: how many of these have bars or semicolons between words,
            have spaces or commas, and begin with no letter.
        phone_cells: how many of these may be numbers of a phone.
        numbers: mean and deviation of the numbers.
        are_whole: whether all numbers are whole, and no durations.
        frequency: ``[BUCKETS]``, in how many texts words of a bucket are; empty before words are counted.
        texts_with_word: ``[WORD_BUCKETS]``, the same for finer buckets, most of which have one word.
        first_others: by column type, the place and the text of the first cell that is of another.
    """

    def __init__(self, name: str, said_type: str, *, is_key: bool = False) -> None:
        self.name = name
        self.said_type = said_type
        self.column_type = said_type
        self.is_key = is_key
        self.rows = self.missing = 0
        self.number_cells = self.too_large_cells = 0
        self.documents = self.words = 0
        self.separated = self.spaced = self.letterless_cells = self.phone_cells = 0
        self.numbers = Moments()
        self.are_whole = True
        self.are_padded = False
        self.holds_lists = False
        self.is_dictionary = False
        self.frequency = np.zeros(0, np.int64)
        self.texts_with_word = np.zeros(0, np.int64)
        self.first_others: dict[str, tuple[str, str]] = {}

        self._clear_dates = DateStatistics()
        """Dates that can be read one way only."""
        self._dates_in_order: dict[DateOrder, DateStatistics] = {
            "day": DateStatistics(),
            "month": DateStatistics(),
        }
        """Dates of numbers alone, such as 31/12/1999, as they are if they begin with a day or a month."""
        self.merged = 0
        """The number of different values among those that were merged."""
        self.distinct_numbers: int | None = None
        """The number of different values of a column of numbers, where texts are not counted."""
        self._counts: list[tuple[Any, NDArray[np.int64]]] | None = []
        """Values, each with how often it is there; None where there are too many."""
        self._unmerged = 0
        self._deferred: list[Any] = []
        """Cells that are numbers, whose texts are counted if that is needed."""
        self._uncounted_words: list[tuple[Words, NDArray[np.int64]]] = []
        self._vocabulary: Counter[bytes] | None = Counter()

    @property
    def present(self) -> int:
        """The number of rows that have something in the column."""
        return self.rows - self.missing

    @property
    def has_only_deferred(self) -> bool:
        """Whether all rows were noted as numbers, and no text is counted."""
        deferred_rows = sum(map(len, self._deferred))
        return 0 < deferred_rows == self.rows

    @property
    def may_be_numbers(self) -> bool:
        """Whether all cells so far are numbers, and a person said nothing else."""
        is_open = self.said_type in ("", "number") and not self.holds_lists
        return is_open and self.number_cells == self.present and "type" not in self.first_others

    def add_numbers(self, values: Any, missing: int, *, are_whole: bool) -> None:
        """Note cells that are all numbers, or missing; their moments are kept by the survey."""
        self.rows += len(values)
        self.missing += missing
        self.number_cells += len(values) - missing
        if self.are_whole and are_whole and not self.are_padded:
            self.are_padded = cells.are_padded(values)
        self.are_whole = self.are_whole and are_whole
        self._deferred.append(values)

    def count_deferred(self) -> None:
        """Count the texts of cells that were noted as numbers."""
        for values in self._deferred:
            self._count(*_counted(values, repeated=self._counts is not None))
        self._deferred = []

    def add(self, values: Any, location_of: LocationOf) -> None:
        """Look at some rows of the column."""
        self.count_deferred()
        are_lists = cells.is_list(values.type)
        if are_lists != self.holds_lists and self.present:  # the files of a table may differ
            shown = "lists" if are_lists else "single values"
            location = location_of(0, self.name)
            self.first_others.setdefault("type", (location, f"{shown}, unlike the rows before"))
            return
        try:
            distinct, codes = cells.distinct(values, not are_lists and self._counts is not None)
        except cells.UnreadableError as error:
            location = location_of(0, self.name)
            self.first_others.setdefault("type", (location, str(error.found)))
            return
        self.is_dictionary |= "dictionary" in str(values.type)
        self.are_whole &= "duration" not in str(values.type)  # seconds are no ids
        self.rows += len(values)
        self.missing += codes.null_count

        def note_others(column_type: str, is_other: NDArray[np.bool_]) -> None:
            if column_type not in self.first_others and is_other.any():
                position = int(np.argmax(is_other))
                location = location_of(codes.index(position).as_py(), self.name)
                self.first_others[column_type] = location, cells.shown(distinct, position)

        if are_lists:
            self._add_lists(distinct, note_others)
            self.holds_lists = True
            return
        counts = np.bincount(codes.drop_null(), minlength=len(distinct))
        self._count(distinct, counts)
        are_others = np.ones(len(distinct), bool)
        may_be_written = not cells.wordy(distinct)
        if may_be_written:
            are_others = self._add_number_cells(distinct, counts)
        note_others("number", are_others)
        are_unclear = np.zeros(len(distinct), bool)
        if may_be_written:
            are_others, are_unclear = self._add_dates(distinct, counts, are_others)
        note_others("date", are_others & ~are_unclear)
        note_others("unclear date", are_unclear)
        if are_others.any():
            others = distinct if are_others.all() else distinct.filter(are_others)
            self._add_words(others, counts[are_others])

    def _count(self, distinct: Any, counts: NDArray[np.int64]) -> None:
        is_category = self.said_type == "category"
        if self._counts is None or (len(distinct) > MOST_DISTINCT and not is_category):
            self._counts = None
            return
        self._counts.append((distinct, counts))
        self._unmerged += len(distinct)
        if self._unmerged > self.merged + MOST_DISTINCT:
            self.merge()

    def merge(self) -> None:
        """Count each different value once."""
        import pyarrow as pa

        if not self._counts:
            return
        values = [values for values, _ in self._counts]
        data_types = {some.type for some in values}
        if len(data_types) > 1 or pa.large_string() in data_types:  # 1.0 is 1
            values = list(map(cells.texts, values))
        together = pa.concat_arrays(values).dictionary_encode()
        weights = np.concatenate([often for _, often in self._counts])
        counts = np.bincount(together.indices, weights).astype(np.int64)
        self._counts = [(together.dictionary, counts)]
        self._unmerged = 0
        self.merged = len(counts)
        if self.merged > MOST_DISTINCT and self.said_type != "category":
            self._counts = None

    def _add_number_cells(self, distinct: Any, counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Note which cells are numbers; returns which are not."""
        numbers, are_others = cells.numbers(distinct)
        is_too_large = are_others & cells.written_as_numbers(distinct)
        self.too_large_cells += int(counts[is_too_large].sum())
        if are_others.all():
            return are_others
        good = numbers[~are_others]
        self.are_padded = self.are_padded or bool(cells.matched(distinct, r"^0\d").any())
        self.numbers.add(numbers, counts)
        self.number_cells += int(counts[~are_others].sum())
        self.are_whole = self.are_whole and bool((good == np.floor(good)).all())
        return are_others

    def _add_dates(
        self, distinct: Any, counts: NDArray[np.int64], are_others: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Note which of the cells that are no numbers are dates.

        Returns:
            which are neither, and which of these are dates whose order is not known yet
        """
        from pyarrow import types

        are_unclear = np.zeros(len(distinct), bool)
        if not are_others.any():
            return are_others, are_unclear
        dates, are_no_dates = cells.times(distinct)
        are_dates = ~are_no_dates & are_others
        self._clear_dates.add(dates.filter(are_dates), counts[are_dates])

        # Whether 03/04/2020 is in March or in April is known once all cells are: both are noted.
        if types.is_large_string(distinct.type):
            are_unclear = are_others & are_no_dates & are_numbers_alone(distinct)
            if are_unclear.any():
                unclear = distinct.filter(are_unclear)
                for order, statistics in self._dates_in_order.items():
                    dates, are_none = cells.times(unclear, order)
                    statistics.add(dates.filter(~are_none), counts[are_unclear][~are_none])
        return are_others & are_no_dates, are_unclear

    @property
    def date_order(self) -> DateOrder:
        """What dates of numbers alone begin with: that by which more of the cells are dates."""
        day_first, month_first = (self._dates_in_order[order].cells for order in ("day", "month"))
        if day_first == month_first:
            return ""
        return "day" if day_first > month_first else "month"

    @property
    def dates_may_begin_with_either(self) -> bool:
        """Whether there are dates of numbers alone, and no cell tells whether a day or a month comes first."""
        return self._dates_in_order["day"].cells > 0 and not self.date_order

    @property
    def date_cells(self) -> int:
        """How many of the cells that are no numbers are dates or times."""
        order = self.date_order
        return self._clear_dates.cells + (self._dates_in_order[order].cells if order else 0)

    def dates(self) -> DateStatistics:
        """What is known of the dates."""
        dates = deepcopy(self._clear_dates)
        if self.date_order:
            dates.merge(self._dates_in_order[self.date_order])
        return dates

    def _add_words(self, values: Any, counts: NDArray[np.int64]) -> None:
        from pyarrow import types

        words = Words(values)
        self.documents += int(counts.sum())
        self.words += int(counts @ np.diff(words.starts))
        if types.is_large_string(values.type):
            begins_with_letter = cells.matched(values, r"^[^\x00-@\[-`{-\x7f]")
            self.separated += int(counts[cells.matched(values, "[|;]")].sum())
            # Codes and addresses of pages have no spaces.
            self.spaced += int(counts[cells.matched(values, "[ ,]")].sum())
            self.letterless_cells += int(counts[~begins_with_letter].sum())
            self.phone_cells += int(counts[cells.matched(values, PHONE)].sum())
        self._uncounted_words.append((words, counts))
        waiting = sum(words.starts[-1] for words, _ in self._uncounted_words)
        if self._counts is None or self.holds_lists or waiting > MOST_DISTINCT:
            self.count_words()

    def count_words(self) -> None:
        """Count in how many texts each word is: hashing takes long, and only text needs it."""
        if not len(self.frequency):
            self.frequency = np.zeros(BUCKETS, np.int64)
            self.texts_with_word = np.zeros(WORD_BUCKETS, np.int64)
        for words, counts in self._uncounted_words:
            once = np.ones(len(words.hashes), bool)  # each word counts once in a text
            in_buckets = words.added(once, words.hashes % BUCKETS, BUCKETS)
            weights = np.repeat(counts, np.diff(in_buckets.indptr))
            self.frequency += np.bincount(in_buckets.indices, weights, BUCKETS).astype(np.int64)
            in_fine_buckets = words.added(once, words.hashes % WORD_BUCKETS, WORD_BUCKETS)
            weights = np.repeat(counts, np.diff(in_fine_buckets.indptr))
            found = np.bincount(in_fine_buckets.indices, weights, WORD_BUCKETS)
            self.texts_with_word += found.astype(np.int64)
            if self._vocabulary is not None:
                self._vocabulary.update(words.counted(counts))
                if len(self._vocabulary) > MOST_WORDS:
                    self._vocabulary = None
        self._uncounted_words = []

    def most_frequent_words(self) -> list[str]:
        """The most frequent word of each hashed feature, "" where there is none; nothing where words are too many."""
        counted = self._vocabulary or Counter()
        best = [(0, b"")] * WIDTH
        features = (hashed(counted) % WIDTH).tolist()
        for feature, (word, count) in zip(features, counted.items(), strict=True):
            best[feature] = min((-count, word), best[feature])
        return [word.decode() for _, word in best] if counted else []

    def _add_lists(
        self, present: Any, note_others: Callable[[str, NDArray[np.bool_]], None]
    ) -> None:
        from pyarrow import compute, types

        are_words = self.said_type == "tokens" or types.is_large_string(present.type.value_type)
        if are_words or not len(present):
            self._add_words(present, np.ones(len(present), np.int64))
            return
        if not self.number_cells:
            width = int(compute.list_value_length(present)[0].as_py())
            self.numbers = Moments(max(1, width))
        lists, are_others = cells.lists(present, self.numbers.width)
        self.numbers.add(lists)
        self.number_cells += int((~np.isnan(lists)).all(axis=1).sum())
        note_others("numbers", are_others)

    @property
    def distinct(self) -> int | None:
        """The number of different values; None where they are too many, or lists."""
        if self.distinct_numbers is not None:
            return self.distinct_numbers if self.distinct_numbers <= MOST_DISTINCT else None
        return None if self._counts is None or self.holds_lists else self.merged

    def values(self, least: float = 0) -> dict[str, int]:
        """Each different value that is there so often, and how often it is, the most frequent first."""
        if not self._counts:
            return {}
        values, counts = self._counts[0]
        often = counts >= least
        texts = cells.texts(values.filter(often)).to_pylist()
        pairs = zip(texts, counts[often].tolist(), strict=True)
        return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))

    def frequent_values(self) -> list[str]:
        """The values of a category that have features of their own; of one that a person said, at least some."""
        frequent = list(self.values(max(LEAST_ROWS_OF_A_VALUE, self.rows / RARE_SHARE)))
        if frequent or not self.said_type:
            return frequent
        return list(self.values(self.rows / RARE_SHARE))

    @property
    def shared_words(self) -> NDArray[np.bool_] | None:
        """Which fine buckets ``[WORD_BUCKETS]`` have words that several texts share; None where all are used."""
        is_shared = self.texts_with_word >= LEAST_ROWS_OF_A_VALUE
        is_small = self.documents < LEAST_ROWS_TO_TELL
        if is_small or (is_shared == (self.texts_with_word > 0)).all():
            return None
        return is_shared

    def share_of_common_words(self, least_share: float = 0.01) -> float:
        """The share of the words of all texts that as large a share of the texts have."""
        self.count_words()
        is_common = self.texts_with_word >= max(LEAST_ROWS_OF_A_VALUE, least_share * self.documents)
        common = self.texts_with_word[is_common].sum()
        return float(common / max(1, self.texts_with_word.sum()))

    @property
    def has_words_to_learn(self) -> bool:
        """Whether texts share words, or no text has one; a few seem shared that share a bucket by chance."""
        shared_words = self.shared_words
        if shared_words is None:
            return True
        shared_count = self.texts_with_word[shared_words].sum()
        return bool(shared_count > LEAST_SHARE_OF_SHARED_WORDS * self.texts_with_word.sum())

    @property
    def are_phones(self) -> bool:
        """Whether most cells look like numbers of phones, by what is written or by the name of the column."""
        if 2 * self.phone_cells > self.present:
            return True
        is_called_phone = re.search(r"phone|fax|mobile", self.name, re.IGNORECASE) is not None
        return is_called_phone and self.are_whole and bool(self.numbers.low[0] >= 10**5)

    @property
    def are_different(self) -> bool:
        """Whether nearly all values are different."""
        return self.distinct is None or self.distinct > 0.95 * self.present

    @property
    def are_short_and_differ(self) -> bool:
        """Whether it has short texts, most of them different."""
        differ = self.distinct is None or self.distinct > DIFFERENT_TITLES * self.present
        return differ and self.words < MANY_WORDS * self.documents

    @property
    def can_be_titles(self) -> bool:
        """Whether its short texts may name nodes: most begin with a letter, and few are numbers."""
        return not self.is_letterless and 10 * self.number_cells < self.present

    @property
    def tells_apart(self) -> bool:
        """Whether it has short values, nearly all of them different."""
        return self.are_different and self.words < MANY_WORDS * self.documents

    @property
    def is_letterless(self) -> bool:
        """Whether most of its values begin with no letter, as amounts, dates and codes do."""
        return 2 * self.letterless_cells > self.present

    @property
    def can_name(self) -> bool:
        """Whether it may name the nodes where no column is a name; amounts such as $1,200 may not."""
        return self.tells_apart and not self.is_letterless


def _counted(values: Any, *, repeated: bool) -> tuple[Any, NDArray[np.int64]]:
    """The different cells of a column, and how often each is there."""
    distinct, codes = cells.distinct(values, repeated)
    return distinct, np.bincount(codes.drop_null(), minlength=len(distinct))
