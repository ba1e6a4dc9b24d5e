"""Cells of a table, of any type of Arrow, as numbers, yes and no, lists and text.

A *plain* column is one of few types of pyarrow, see `plain`. Arrays go from pyarrow to NumPy by
`as_numpy`, since pyarrow's own conversions load pandas where it is installed, which takes longer
than reading a small table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from infomax.errors import shorten
from infomax.io.encoding.column_types import READABLE_CELLS

MISSING = (
    "",
    "#N/A",
    "#NA",
    "N/A",
    "NA",
    "n/a",
    "<NA>",
    "NULL",
    "Null",
    "null",
    "NaN",
    "nan",
    "-nan",
    "NaT",
    "None",
    "\\N",
)
"""Text that stands for nothing, as pandas, R and databases write it."""
PAIRS = (("false", "true"), ("no", "yes"), ("f", "t"), ("n", "y"), ("0", "1"))
"""What a boolean may be, in any case: no and yes."""
LARGEST = float(np.finfo(np.float32).max) * (1 + 2.0**-25)
"""Numbers from this on are infinite as float32."""
NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
INFINITE = r"(?i)^[+-]?inf(inity)?$"
NUMPY_TYPES = {"int32": "<i4", "int64": "<i8", "float": "<f4", "double": "<f8"}
"""The types of NumPy for those of pyarrow that `as_numpy` reads, besides bool."""


class UnreadableError(ValueError):
    """A cell that is not what its column holds.

    Attributes:
        row: the first row of such a cell.
        column: the name of the column, once it is known.
        expected: what the column holds.
        found: the cell.
        bad: ``[n]``, all rows with such a cell; None where the whole column is one of another type.
    """

    def __init__(
        self, row: int, expected: str, found: str, bad: NDArray[np.bool_] | None = None
    ) -> None:
        super().__init__(row, expected, found)
        self.row = row
        self.column = ""
        self.expected = expected
        self.found = found
        self.bad = bad


def plain(values: Any) -> Any:
    """A column as an array of one of few types of pyarrow.

    These are bool, int64, double, timestamp[us], large_string, and large lists of double or text.
    Nothing, NaN, and text that stands for nothing are null.
    """
    import pyarrow as pa
    from pyarrow import compute, types

    values = one_array(values)
    if types.is_dictionary(values.type):
        values = values.dictionary_decode()
    data_type = values.type

    # Numbers
    if types.is_boolean(data_type):
        return values
    if types.is_integer(data_type) and not types.is_uint64(data_type):
        return values.cast(pa.int64())
    if types.is_integer(data_type) or types.is_floating(data_type) or types.is_decimal(data_type):
        numbers = values.cast(pa.float64())
        return with_gaps(numbers, compute.is_nan(numbers))

    # Times; a duration is a number of seconds, and an hour is one of the first day of 1970.
    if types.is_duration(data_type):
        microseconds = values.cast(pa.duration("us"), safe=False).cast(pa.int64())
        return compute.divide(microseconds.cast(pa.float64()), 1e6)
    if types.is_date(data_type) or types.is_timestamp(data_type):
        return values.cast(pa.timestamp("us"), safe=False)
    if types.is_time(data_type):
        return values.cast(pa.time64("us"), safe=False).cast(pa.int64()).cast(pa.timestamp("us"))

    if is_list(data_type):
        return _plain_lists(values)
    if _may_be_text(data_type):
        trimmed = compute.utf8_trim_whitespace(values.cast(pa.large_string()))
        is_missing = compute.is_in(trimmed, text_array(MISSING))
        return with_gaps(trimmed, is_missing) if is_missing.true_count else trimmed
    raise UnreadableError(0, READABLE_CELLS, f"type {data_type}")


def _may_be_text(data_type: Any) -> bool:
    """Whether a type of pyarrow is text, or that of a column without any value."""
    from pyarrow import types

    return bool(
        types.is_null(data_type)
        or types.is_string(data_type)
        or types.is_large_string(data_type)
        or types.is_string_view(data_type)
    )


def _plain_lists(values: Any) -> Any:
    """Lists of numbers or of text; a list without any number is null."""
    import pyarrow as pa
    from pyarrow import compute, types

    entry_type = values.type.value_type
    if types.is_nested(entry_type):
        raise UnreadableError(0, READABLE_CELLS, f"type {values.type}")
    holds_numbers = (
        types.is_integer(entry_type)
        or types.is_floating(entry_type)
        or types.is_boolean(entry_type)
    )
    if not holds_numbers:
        return values.cast(pa.large_list(pa.large_string()))
    is_empty = compute.equal(compute.list_value_length(values), 0)
    return with_gaps(values, is_empty).cast(pa.large_list(pa.float64()))


def single(values: Any, expected: str) -> Any:
    """A column of single values as it is; refused at the first list, if there is one.

    Raises:
        UnreadableError: there is a list in a row.
    """
    import pyarrow as pa

    if not is_list(values.type):
        return values
    lists = plain(values)
    has_list = is_present(lists)
    if has_list.any():
        row = int(np.argmax(has_list))
        raise UnreadableError(row, expected, shown(lists, row))
    return pa.nulls(len(values))


def distinct(values: Any, repeated: bool = True) -> tuple[Any, Any]:
    """The different cells of a column, plain, as they appear, and which of them each row has.

    Args:
        values: a column of pyarrow.
        repeated: whether cells are repeated. Where they are not, each counts as another.

    Returns:
        the different cells ``[k]``, and the position ``[n]`` of that of each row, null for none
    """
    import pyarrow as pa
    from pyarrow import types

    if not repeated:
        cells = plain(values)
        has_cell = is_present(cells)
        validity = pa.py_buffer(np.packbits(has_cell, bitorder="little"))
        positions = pa.py_buffer(np.cumsum(has_cell) - 1)
        codes = pa.Array.from_buffers(pa.int64(), len(cells), [validity, positions])
        return cells.drop_null(), codes
    values = one_array(values)
    if not types.is_string(values.type) and not types.is_large_string(values.type):
        encoded = plain(values).dictionary_encode()
        return encoded.dictionary, encoded.indices

    # Of text, white space is removed from the different cells alone. Two may become one then.
    encoded = values.dictionary_encode()
    written = encoded.dictionary.cast(pa.large_string())
    texts_without_space = plain(written)
    if texts_without_space.equals(written):
        return texts_without_space, encoded.indices
    merged = texts_without_space.dictionary_encode()
    return merged.dictionary, merged.indices.take(encoded.indices)


def numbers(values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A plain column as numbers that float32 can hold.

    Returns:
        the numbers ``[n]``, NaN for none, and a mask ``[n]`` of cells that are no numbers
    """
    import pyarrow as pa
    from pyarrow import compute, types

    has_cell = is_present(values)
    no_numbers = np.full(len(values), np.nan), has_cell
    if types.is_large_string(values.type):
        # Of words alone, this is a quicker test than the ones that follow.
        if not matched(values, r"^[0-9+.-]").any():
            return no_numbers
        try:
            values = values.cast(pa.float64())
        except pa.ArrowInvalid:  # some are no numbers, or not as pyarrow reads them
            is_number = compute.match_substring_regex(values, NUMBER)
            if not is_number.true_count:
                return no_numbers
            written = with_gaps(values, compute.invert(is_number))
            values = compute.utf8_ltrim(written, characters="+")
    elif not (
        types.is_boolean(values.type)
        or types.is_integer(values.type)
        or types.is_floating(values.type)
    ):
        return no_numbers
    all_numbers = as_numpy(values.cast(pa.float64(), safe=False), null=np.nan)
    is_small = np.abs(all_numbers) <= LARGEST
    return np.where(is_small, all_numbers, np.nan), has_cell & ~is_small


def written_as_numbers(values: Any) -> NDArray[np.bool_]:
    """Which cells ``[n]`` of a plain column are numbers, though float32 may not hold them."""
    from pyarrow import types

    if types.is_large_string(values.type):
        return matched(values, NUMBER) | matched(values, INFINITE)
    if types.is_integer(values.type) or types.is_floating(values.type):
        return is_present(values)
    return np.zeros(len(values), bool)


def truths(values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A plain column, or a list of text, as 0 and 1.

    Returns:
        the numbers ``[n]``, NaN for neither, and a mask ``[n]`` of cells that are no booleans
    """
    from pyarrow import compute, types

    if isinstance(values, list):
        values = text_array(values)
    elif types.is_boolean(values.type):
        return numbers(values)
    pairs = text_array([text for pair in PAIRS for text in pair])
    positions = as_numpy(compute.index_in(compute.utf8_lower(texts(values)), pairs), null=-1)
    is_boolean = positions >= 0
    zeros_and_ones = np.where(is_boolean, positions % 2, np.nan)
    return zeros_and_ones, is_present(values) & ~is_boolean


def lists(values: Any, width: int) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """A plain column as lists of numbers of one length.

    Returns:
        the numbers ``[n, W]``, NaN where there is no list, and a mask ``[n]`` of other cells
    """
    from pyarrow import compute, types

    has_cell = is_present(values)
    entries = np.full((len(values), width), np.nan)
    if not types.is_large_list(values.type) or types.is_large_string(values.type.value_type):
        return entries, has_cell
    lengths = as_numpy(compute.list_value_length(values), null=-1)
    has_width = lengths == width
    lists_of_width = as_numpy(values.filter(as_mask(has_width)).flatten(), null=np.nan)
    entries[has_width] = lists_of_width.reshape(-1, width)

    # A list with a number that float32 cannot hold is none.
    is_good = has_width.copy()
    is_good[has_width] = (np.abs(entries[has_width]) <= LARGEST).all(axis=1)
    entries[~is_good] = np.nan
    return entries, has_cell & ~is_good


def texts(values: Any) -> Any:
    """A plain column as text, one text for one number: 1.0 is 1."""
    import pyarrow as pa
    from pyarrow import compute

    if str(values.type) != "large_string":
        return values.cast(pa.large_string())
    if not compute.match_substring(values, ".0").true_count:
        return values
    return compute.replace_substring_regex(values, r"^(-?\d+)\.0+$", r"\1")


def shown(values: Any, row: int) -> str:
    """A cell for a message."""
    value = values[row].as_py()
    return shorten(value) if isinstance(value, str) else str(value)[:60]


def matched(values: Any, pattern: str) -> NDArray[np.bool_]:
    """Which cells ``[n]`` of a plain column are text in which a regular expression is found."""
    from pyarrow import compute

    if str(values.type) != "large_string":
        return np.zeros(len(values), bool)
    return as_numpy(compute.match_substring_regex(values, pattern), null=False)


def are_padded(values: Any) -> bool:
    """Whether a column, if it is text, has a cell that begins with a zero and another digit."""
    from pyarrow import types

    if not types.is_large_string(values.type) and not types.is_string(values.type):
        return False
    starts, letters = utf8(one_array(values).cast("large_string"))
    first_letters = starts[:-1][np.diff(starts) > 1]
    second_letters = letters[first_letters + 1]
    is_digit = (second_letters >= ord("0")) & (second_letters <= ord("9"))
    return bool(((letters[first_letters] == ord("0")) & is_digit).any())


def is_list(data_type: Any) -> bool:
    """Whether a type of pyarrow is that of lists."""
    from pyarrow import types

    return bool(
        types.is_list(data_type)
        or types.is_large_list(data_type)
        or types.is_fixed_size_list(data_type)
    )


def one_array(values: Any) -> Any:
    """A column as one array, where it is in chunks."""
    import pyarrow as pa

    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def is_present(values: Any) -> NDArray[np.bool_]:
    """Which cells ``[n]`` of an array are not null."""
    if not values.null_count:
        return np.ones(len(values), bool)
    return as_numpy(values.is_valid())


def as_numpy(values: Any, null: float | None = None) -> NDArray[Any]:
    """An array ``[n]`` of pyarrow as a NumPy array; it may share the memory, and not be writable.

    Args:
        values: an array of bool, or of one of `NUMPY_TYPES`.
        null: what null becomes; None where there is no null.
    """
    n = len(values)
    validity, content = values.buffers()
    if str(values.type) == "bool":
        cells = _unpacked(content, values.offset, n)
    elif n:
        numbers = np.frombuffer(content, NUMPY_TYPES[str(values.type)])
        cells = numbers[values.offset : values.offset + n]
    else:
        cells = np.zeros(0, NUMPY_TYPES[str(values.type)])
    if values.null_count:
        if null is None:
            raise ValueError("an array without null was expected")
        cells = np.where(_unpacked(validity, values.offset, n), cells, null).astype(cells.dtype)
    return cells


def _unpacked(packed: Any, offset: int, n: int) -> NDArray[np.bool_]:
    """Bits ``[n]`` of a buffer of pyarrow."""
    if not n:
        return np.zeros(0, bool)
    bits = np.unpackbits(np.frombuffer(packed, np.uint8), count=offset + n, bitorder="little")
    return bits[offset:].astype(bool)


def with_gaps(values: Any, is_missing: Any) -> Any:
    """An array with null where a mask of pyarrow is true, or null."""
    import pyarrow as pa
    from pyarrow import compute

    return compute.if_else(is_missing, pa.nulls(1, values.type)[0], values)


def fill_text(values: Any) -> Any:
    """An array of text with empty text for null."""
    from pyarrow import compute

    return compute.fill_null(values, text_array([""])[0]) if values.null_count else values


def as_mask(mask: NDArray[np.bool_]) -> Any:
    """A mask ``[n]`` as an array of pyarrow."""
    import pyarrow as pa

    packed = np.packbits(mask, bitorder="little")
    return pa.Array.from_buffers(pa.bool_(), len(mask), [None, pa.py_buffer(packed)])


def text_array(texts: Sequence[str], data_type: Any = None) -> Any:
    """Texts ``[n]`` as an array of pyarrow, of large_string or of another type of text."""
    import pyarrow as pa

    encoded = [text.encode() for text in texts]
    starts = offsets(np.array(list(map(len, encoded)), np.int64))
    buffers = pa.py_buffer(starts), pa.py_buffer(b"".join(encoded))
    array = pa.LargeStringArray.from_buffers(len(texts), *buffers)
    return array if data_type is None else array.cast(data_type)


def utf8(values: Any) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
    """The bytes of an array of large_string, and where each text begins in them.

    Returns:
        where each text begins and the last one ends ``[n + 1]``, and the bytes
    """
    _, offset_buffer, letter_buffer = values.buffers()
    starts = np.zeros(1, np.int64)
    if len(values):
        starts = np.frombuffer(offset_buffer, np.int64)[values.offset :][: len(values) + 1]
    letters = np.frombuffer(letter_buffer or b"", np.uint8)[starts[0] : starts[-1]]
    return starts - starts[0], letters


def offsets(lengths: NDArray[Any]) -> NDArray[np.int64]:
    """Where each of n spans of these lengths ``[n]`` begins, and the last one ends, ``[n + 1]``."""
    return np.concatenate([[0], np.cumsum(lengths)])
