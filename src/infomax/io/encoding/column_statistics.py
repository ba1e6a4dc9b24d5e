"""What is found in the cells of one column: numbers, times, words, and how often each value is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from infomax.io.encoding import cells
from infomax.io.encoding.dates import DateStatistics
from infomax.io.encoding.moments import Moments
from infomax.io.encoding.text import BUCKETS, WIDTH, WORD_BUCKETS, Words, hash_words
from infomax.io.encoding.times import (
    DateOrder,
    are_numbers_alone,
    are_words_alone,
    read_times,
)

MOST_DISTINCT = 100_000
"""Different values that are counted; a column with more of them is no category."""
RARE_SHARE = 1000
"""A value of a category has its own feature if one row in so many has it, or more."""
DIFFERENT_TITLES = 0.8
"""Share of different texts from which short ones may be titles: 0.93 of Chinook's tracks differ."""
LEAST_ROWS_OF_A_VALUE = 2
"""Rows that share a word or a value from which it is a feature.

What one row alone has tells it from all others alike."""
LEAST_SHARE_OF_SHARED_WORDS = 0.01
"""Where a smaller share of words is shared, texts are no features."""
LEAST_ROWS_TO_TELL = 20
"""In fewer rows than this, words and texts may all differ by chance."""
PHONE = r"^[+(]?\d[\d\s()./+-]{5,}\d( ?(x|ext\.?) ?\d+)?$"
"""What a number of a phone or a fax looks like: groups of digits."""
MOST_WORDS = 1 << 18
"""Different words that are counted, to name the most frequent one of each hashed feature."""
MANY_WORDS = 6
"""Mean number of words from which text is never a category or a name."""
LocationOf: TypeAlias = Callable[[int, str], str]
"""Names the location of a cell, by the number of its row in a block and by its column."""
NoteOthers: TypeAlias = Callable[[str, NDArray[np.bool_]], None]
"""Notes the first of the different cells that are not of a column type, by a mask of all such."""


class ColumnStatistics:
    """What is found in the cells of one column, in whatever order its rows come.

    Attributes:
        name: the name of the column.
        requested_type: the column type that a person said; "" where the cells decide it.
        column_type: the type that was decided, once it is.
        is_key: whether the column is called after other nodes.
        rows: the number of rows.
        missing: how many of them have nothing in the column.
        number_cells: how many cells are numbers.
        too_large_cells: how many cells are numbers that float32 cannot hold.
        documents: how many cells are neither numbers nor dates.
        words: how many words these have.
        separated_cells: how many of these have bars or semicolons between words.
        spaced_cells: how many of these have spaces or commas.
        letterless_cells: how many of these begin with no letter.
        phone_cells: how many of these may be numbers of a phone.
        numbers: mean and deviation of the numbers.
        are_whole: whether all numbers are whole, and no durations.
        are_padded: whether a number begins with a zero and another digit, as codes do.
        holds_lists: whether the cells are lists.
        is_dictionary: whether Arrow or pandas calls the column a category.
        frequency: ``[BUCKETS]``, how many texts have words of a bucket; empty before `count_words`.
        texts_with_word: ``[WORD_BUCKETS]``, the same for finer buckets, most of one word.
        first_other_cells: by column type, the location and the text of the first cell of another.
        distinct_values: the number of different values of a column whose values are counted.
        distinct_numbers: the same of a column of numbers whose texts are not counted.
    """

    def __init__(
        self,
        name: str,
        requested_type: str,
        *,
        is_key: bool = False,
        most_distinct: int = MOST_DISTINCT,
        most_words: int = MOST_WORDS,
    ) -> None:
        self.name = name
        self.requested_type = requested_type
        self.column_type = requested_type
        self.is_key = is_key
        self.rows = 0
        self.missing = 0
        self.number_cells = 0
        self.too_large_cells = 0
        self.documents = 0
        self.words = 0
        self.separated_cells = 0
        self.spaced_cells = 0
        self.letterless_cells = 0
        self.phone_cells = 0
        self.numbers = Moments()
        self.are_whole = True
        self.are_padded = False
        self.holds_lists = False
        self.is_dictionary = False
        self.frequency = np.zeros(0, np.int64)
        self.texts_with_word = np.zeros(0, np.int64)
        self.first_other_cells: dict[str, tuple[str, str]] = {}
        self.distinct_values = 0
        self.distinct_numbers: int | None = None

        self._most_distinct = most_distinct
        self._most_words = most_words
        self._unambiguous_dates = DateStatistics()
        """Dates that can be read in one way only."""
        self._dates_in_order: dict[DateOrder, DateStatistics] = {
            "day": DateStatistics(),
            "month": DateStatistics(),
        }
        """Dates of numbers alone, such as 31/12/1999, if they begin with a day, or with a month."""
        self._value_counts: list[tuple[Any, NDArray[np.int64]]] | None = []
        """Values and their numbers of rows, block by block; None where they are too many."""
        self._unmerged_values = 0
        self._deferred: list[Any] = []
        """Blocks of cells that are numbers, whose texts are counted if that is needed."""
        self._uncounted_words: list[tuple[Words, NDArray[np.int64]]] = []
        self._vocabulary: Counter[bytes] | None = Counter()

    # What is added

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
            are_counted = self._value_counts is not None
            distinct, codes = cells.distinct(values, repeated=are_counted)
            row_counts = np.bincount(cells.as_numpy(codes.drop_null()), minlength=len(distinct))
            self._count_values(distinct, row_counts)
        self._deferred = []

    def add(self, values: Any, location_of: LocationOf) -> None:
        """Look at some rows of the column."""
        self.count_deferred()
        are_lists = cells.is_list(values.type)
        if are_lists != self.holds_lists and self.present:  # the files of a table may differ
            found = "lists" if are_lists else "single values"
            location = location_of(0, self.name)
            difference = f"{found}, unlike the rows before"
            self.first_other_cells.setdefault("type", (location, difference))
            return

        # All that follows looks at different cells once, each with the number of its rows.
        are_counted = not are_lists and self._value_counts is not None
        try:
            distinct, codes = cells.distinct(values, are_counted)
        except cells.UnreadableError as error:
            location = location_of(0, self.name)
            self.first_other_cells.setdefault("type", (location, str(error.found)))
            return
        self.is_dictionary = self.is_dictionary or "dictionary" in str(values.type)
        self.are_whole = self.are_whole and "duration" not in str(values.type)  # they are no ids
        self.rows += len(values)
        self.missing += codes.null_count

        def note_others(column_type: str, is_other: NDArray[np.bool_]) -> None:
            if column_type not in self.first_other_cells and is_other.any():
                position = int(np.argmax(is_other))
                first_row = int(np.argmax(cells.as_numpy(codes, null=-1) == position))
                location = location_of(first_row, self.name)
                self.first_other_cells[column_type] = location, cells.shown(distinct, position)

        if are_lists:
            self._add_lists(distinct, note_others)
            self.holds_lists = True
            return
        row_counts = np.bincount(cells.as_numpy(codes.drop_null()), minlength=len(distinct))
        self._count_values(distinct, row_counts)
        self._add_single_cells(distinct, row_counts, note_others)

    def _add_single_cells(
        self, distinct: Any, row_counts: NDArray[np.int64], note_others: NoteOthers
    ) -> None:
        """Note which of some different cells are numbers, dates, and words."""
        are_others = np.ones(len(distinct), bool)
        are_unclear = np.zeros(len(distinct), bool)
        may_be_numbers_or_dates = not are_words_alone(distinct)
        if may_be_numbers_or_dates:
            are_others = self._add_number_cells(distinct, row_counts)
        note_others("number", are_others)
        if may_be_numbers_or_dates:
            are_others, are_unclear = self._add_dates(distinct, row_counts, are_others)
        note_others("date", are_others & ~are_unclear)
        note_others("unclear date", are_unclear)
        if are_others.all() and len(distinct):
            self._add_words(distinct, row_counts)
        elif are_others.any():
            self._add_words(distinct.filter(cells.as_mask(are_others)), row_counts[are_others])

    def _add_number_cells(self, distinct: Any, row_counts: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Note which cells are numbers; returns which are not."""
        numbers, are_others = cells.numbers(distinct)
        is_too_large = are_others & cells.written_as_numbers(distinct)
        self.too_large_cells += int(row_counts[is_too_large].sum())
        if are_others.all():
            return are_others
        are_numbers = ~are_others
        finite_numbers = numbers[are_numbers]
        self.are_padded = self.are_padded or bool(cells.matched(distinct, r"^0\d").any())
        self.numbers.add(numbers, row_counts)
        self.number_cells += int(row_counts[are_numbers].sum())
        is_whole = finite_numbers == np.floor(finite_numbers)
        self.are_whole = self.are_whole and bool(is_whole.all())
        return are_others

    def _add_dates(
        self, distinct: Any, row_counts: NDArray[np.int64], are_others: NDArray[np.bool_]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Note which of the cells that are no numbers are dates.

        Returns:
            which are neither, and which of these are dates whose order is not known yet
        """
        from pyarrow import types

        are_unclear = np.zeros(len(distinct), bool)
        if not are_others.any():
            return are_others, are_unclear
        dates, are_no_dates = read_times(distinct)
        are_dates = ~are_no_dates & are_others
        self._unambiguous_dates.add(dates.filter(cells.as_mask(are_dates)), row_counts[are_dates])

        # Whether 03/04/2020 is in March or in April is known once all cells are: both are noted.
        if types.is_large_string(distinct.type):
            are_unclear = are_others & are_no_dates & are_numbers_alone(distinct)
        if are_unclear.any():
            unclear_cells = distinct.filter(cells.as_mask(are_unclear))
            unclear_counts = row_counts[are_unclear]
            for order, statistics in self._dates_in_order.items():
                dates, are_no_dates_in_order = read_times(unclear_cells, order)
                are_dates = ~are_no_dates_in_order
                statistics.add(dates.filter(cells.as_mask(are_dates)), unclear_counts[are_dates])
        return are_others & are_no_dates, are_unclear

    def _add_words(self, values: Any, row_counts: NDArray[np.int64]) -> None:
        from pyarrow import types

        words = Words(values)
        self.documents += int(row_counts.sum())
        self.words += int(row_counts @ np.diff(words.starts))
        if types.is_large_string(values.type):
            begins_with_letter = cells.matched(values, r"^[^\x00-@\[-`{-\x7f]")
            self.separated_cells += int(row_counts[cells.matched(values, "[|;]")].sum())
            # Codes and addresses of pages have no spaces.
            self.spaced_cells += int(row_counts[cells.matched(values, "[ ,]")].sum())
            self.letterless_cells += int(row_counts[~begins_with_letter].sum())
            self.phone_cells += int(row_counts[cells.matched(values, PHONE)].sum())

        # Hashing takes long: the words of a column of few values wait until they are needed.
        self._uncounted_words.append((words, row_counts))
        waiting_words = sum(words.starts[-1] for words, _ in self._uncounted_words)
        has_many_values = self._value_counts is None or waiting_words > self._most_distinct
        if has_many_values or self.holds_lists:
            self.count_words()

    def _add_lists(self, present_lists: Any, note_others: NoteOthers) -> None:
        from pyarrow import compute, types

        entry_type = present_lists.type.value_type
        are_tokens = self.requested_type == "tokens" or types.is_large_string(entry_type)
        if are_tokens or not len(present_lists):
            self._add_words(present_lists, np.ones(len(present_lists), np.int64))
            return
        if not self.number_cells:
            width = int(compute.list_value_length(present_lists)[0].as_py())
            self.numbers = Moments(max(1, width))
        lists, are_others = cells.lists(present_lists, self.numbers.width)
        self.numbers.add(lists)
        self.number_cells += int((~np.isnan(lists)).all(axis=1).sum())
        note_others("numbers", are_others)

    # How often each value and each word is there

    def _count_values(self, distinct: Any, row_counts: NDArray[np.int64]) -> None:
        is_requested_category = self.requested_type == "category"
        has_too_many = len(distinct) > self._most_distinct and not is_requested_category
        if self._value_counts is None or has_too_many:
            self._value_counts = None
            return
        self._value_counts.append((distinct, row_counts))
        self._unmerged_values += len(distinct)
        if self._unmerged_values > self.distinct_values + self._most_distinct:
            self.merge()

    def merge(self) -> None:
        """Count each different value once, over all blocks."""
        import pyarrow as pa

        if not self._value_counts:
            return
        blocks = [values for values, _ in self._value_counts]
        data_types = {values.type for values in blocks}
        if len(data_types) > 1 or pa.large_string() in data_types:  # 1.0 is 1
            blocks = list(map(cells.texts, blocks))
        together = pa.concat_arrays(blocks).dictionary_encode()
        weights = np.concatenate([row_counts for _, row_counts in self._value_counts])
        row_counts = np.bincount(cells.as_numpy(together.indices), weights).astype(np.int64)
        self._value_counts = [(together.dictionary, row_counts)]
        self._unmerged_values = 0
        self.distinct_values = len(row_counts)
        if self.distinct_values > self._most_distinct and self.requested_type != "category":
            self._value_counts = None

    def values(self, least: float = 0) -> dict[str, int]:
        """The values in at least so many rows, with their numbers of rows, by frequency."""
        if not self._value_counts:
            return {}
        values, row_counts = self._value_counts[0]
        is_frequent = row_counts >= least
        texts = cells.texts(values.filter(cells.as_mask(is_frequent))).to_pylist()
        pairs = zip(texts, row_counts[is_frequent].tolist(), strict=True)
        return dict(sorted(pairs, key=lambda pair: (-pair[1], pair[0])))

    def frequent_values(self) -> list[str]:
        """The values of a category that have features of their own.

        A category that a person asked for has some even where each value is in one row.
        """
        least = self.rows / RARE_SHARE
        frequent = list(self.values(max(LEAST_ROWS_OF_A_VALUE, least)))
        if frequent or not self.requested_type:
            return frequent
        return list(self.values(least))

    def count_words(self) -> None:
        """Count in how many texts each word is."""
        if not len(self.frequency):
            self.frequency = np.zeros(BUCKETS, np.int64)
            self.texts_with_word = np.zeros(WORD_BUCKETS, np.int64)
        for words, row_counts in self._uncounted_words:
            self.frequency += _texts_by_bucket(words, row_counts, BUCKETS)
            self.texts_with_word += _texts_by_bucket(words, row_counts, WORD_BUCKETS)
            if self._vocabulary is not None:
                self._vocabulary.update(words.count(row_counts))
                if len(self._vocabulary) > self._most_words:
                    self._vocabulary = None
        self._uncounted_words = []

    def most_frequent_words(self) -> list[str]:
        """The most frequent word of each feature, "" for none; empty where words are many."""
        vocabulary = self._vocabulary or Counter()
        if not vocabulary:
            return []
        best = [(0, b"")] * WIDTH
        features = (hash_words(vocabulary) % WIDTH).tolist()
        for feature, (word, count) in zip(features, vocabulary.items(), strict=True):
            best[feature] = min((-count, word), best[feature])
        return [word.decode() for _, word in best]

    @property
    def shared_words(self) -> NDArray[np.bool_] | None:
        """Which fine buckets ``[WORD_BUCKETS]`` have words that several texts share.

        None where no word is left out.
        """
        is_shared = self.texts_with_word >= LEAST_ROWS_OF_A_VALUE
        has_few_texts = self.documents < LEAST_ROWS_TO_TELL
        if has_few_texts or (is_shared == (self.texts_with_word > 0)).all():
            return None
        return is_shared

    def share_of_common_words(self, least_share: float = 0.01) -> float:
        """The share of the words of all texts that are in at least such a share of the texts."""
        self.count_words()
        least_texts = max(LEAST_ROWS_OF_A_VALUE, least_share * self.documents)
        common_count = self.texts_with_word[self.texts_with_word >= least_texts].sum()
        return float(common_count / max(1, self.texts_with_word.sum()))

    # What was found

    @property
    def present(self) -> int:
        """The number of rows that have something in the column."""
        return self.rows - self.missing

    @property
    def has_only_deferred(self) -> bool:
        """Whether all rows were noted as numbers, and no text is counted."""
        return 0 < self.rows == sum(map(len, self._deferred))

    @property
    def may_be_numbers(self) -> bool:
        """Whether all cells so far are numbers, and a person said nothing else."""
        may_have_type = self.requested_type in ("", "number") and not self.holds_lists
        are_numbers = self.number_cells == self.present
        return may_have_type and are_numbers and "type" not in self.first_other_cells

    @property
    def distinct(self) -> int | None:
        """The number of different values; None where they are too many, or lists."""
        if self.distinct_numbers is not None:
            return self.distinct_numbers if self.distinct_numbers <= self._most_distinct else None
        if self._value_counts is None or self.holds_lists:
            return None
        return self.distinct_values

    @property
    def date_order(self) -> DateOrder:
        """What dates of numbers alone begin with: that by which more of the cells are dates."""
        day_first = self._dates_in_order["day"].cells
        month_first = self._dates_in_order["month"].cells
        if day_first == month_first:
            return ""
        return "day" if day_first > month_first else "month"

    @property
    def dates_may_begin_with_either(self) -> bool:
        """Whether no cell tells if dates of numbers alone begin with the day or the month."""
        return self._dates_in_order["day"].cells > 0 and not self.date_order

    @property
    def date_cells(self) -> int:
        """How many of the cells that are no numbers are dates or times."""
        order = self.date_order
        cells_in_order = self._dates_in_order[order].cells if order else 0
        return self._unambiguous_dates.cells + cells_in_order

    def dates(self) -> DateStatistics:
        """What was found in the dates."""
        dates = deepcopy(self._unambiguous_dates)
        if self.date_order:
            dates.merge(self._dates_in_order[self.date_order])
        return dates

    @property
    def has_words_to_learn(self) -> bool:
        """Whether texts share words, or have none; a few share a bucket by chance."""
        shared_words = self.shared_words
        if shared_words is None:
            return True
        shared_count = self.texts_with_word[shared_words].sum()
        return bool(shared_count > LEAST_SHARE_OF_SHARED_WORDS * self.texts_with_word.sum())

    @property
    def are_phones(self) -> bool:
        """Whether most cells look like numbers of phones, by themselves or by the column's name."""
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
        """Whether short texts may name nodes: most begin with a letter, and few are numbers."""
        return not self.is_letterless and 10 * self.number_cells < self.present

    @property
    def tells_rows_apart(self) -> bool:
        """Whether it has short values, nearly all of them different."""
        return self.are_different and self.words < MANY_WORDS * self.documents

    @property
    def is_letterless(self) -> bool:
        """Whether most of its values begin with no letter, as amounts, dates and codes do."""
        return 2 * self.letterless_cells > self.present

    @property
    def can_name(self) -> bool:
        """Whether it may name nodes where no column is a name; amounts such as $1,200 not."""
        return self.tells_rows_apart and not self.is_letterless


def _texts_by_bucket(
    words: Words, row_counts: NDArray[np.int64], bucket_count: int
) -> NDArray[np.int64]:
    """In how many texts ``[bucket_count]`` words of each bucket are; each text counts once."""
    is_in_text = np.ones(len(words.hashes), bool)
    in_buckets = words.sum_in_columns(is_in_text, words.hashes % bucket_count, bucket_count)
    weights = np.repeat(row_counts, np.diff(in_buckets.indptr))
    return np.bincount(in_buckets.indices, weights, bucket_count).astype(np.int64)
