"""Checks of the arrays that a graph is made of: their types, shapes and values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from infomax.errors import InputError, check_whole_number, format_count, shorten

NUMBER_DTYPES = "biufO"
"""NumPy's letters for the dtypes that hold real numbers, or objects that may be numbers."""

MOST_NODES = 2**31 - 1
"""Row numbers have 32 bits."""

MOST_FEATURES = 4_000_000
"""An encoder has one weight per column and dimension.

With more columns, its weights alone would not fit a machine.
"""

MOST_WEIGHT = 1e24
"""The most that a single edge may weigh.

So the sum of all weights at a node is a float32, too, and no node vanishes.
"""
WEIGHT = f"a weight of zero or more, at most {MOST_WEIGHT:g}"


def check_array(
    name: str, values: Any, dtype_kinds: str, expected: str, dtype: Any = None
) -> NDArray[Any]:
    """The values as an array; refuse values of other dtypes and rows of unequal length.

    Args:
        name: what to call the values in a message.
        values: whatever NumPy makes an array of.
        dtype_kinds: NumPy's letters for the kinds of dtype that the values may have.
        expected: such values, in words.
        dtype: what the array is cast to; None: the values stay as they are.
    """
    try:
        array = np.asarray(values)
        if array.size and array.dtype.kind not in dtype_kinds:
            raise TypeError(f"dtype {array.dtype}")
        return np.asarray(array, dtype=dtype)
    # A tensor with gradients raises a RuntimeError.
    except (OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise InputError(name, expected, str(error).rstrip(".")) from None


def all_finite(numbers: NDArray[Any], numbers_per_block: int = 1 << 18) -> bool:
    """Whether an array in C order has no NaN and no infinity.

    A block of numbers stays in the cache while it is looked at.
    """
    flat = numbers.reshape(-1)
    first_numbers = range(0, len(flat), numbers_per_block)
    return all(
        np.isfinite(flat[first : first + numbers_per_block]).all() for first in first_numbers
    )


def check_ids(ids: ArrayLike, n: int) -> NDArray[Any]:
    """Ids ``[N]`` as int64 or as str objects; unique, and all of one type."""
    column = ids if isinstance(ids, np.ndarray) else np.asarray(ids, dtype=object)
    if column.shape != (n,):
        expected = f"{format_count(n, 'id')}, one per node"
        raise InputError("ids", expected, f"shape {list(column.shape)}")

    are_text = False
    remedy = "Make all of them text."
    if column.dtype.kind not in "iu" or column.dtype == np.uint64:
        column = column.astype(object)
        id_types = set(map(type, column.tolist()))
        are_text = id_types == {str}
        are_integers = all(issubclass(id_type, int | np.integer) for id_type in id_types)
        if not are_text and not are_integers:
            found = " and ".join(sorted(id_type.__name__ for id_type in id_types))
            raise InputError("ids", "all integers or all text", found, remedy)
    if not are_text:
        try:
            column = column.astype(np.int64)
        except OverflowError as error:
            expected = "integers of 64 bits with their sign"
            raise InputError("ids", expected, str(error), remedy) from None

    # Sorting needs far less memory than a set of Python's integers; text is not worth sorting.
    if are_text:
        num_distinct = len(set(column.tolist()))
    else:
        num_distinct = 1 + int(np.count_nonzero(np.diff(np.sort(column))))
    if num_distinct < n:
        duplicate, count = Counter(column.tolist()).most_common(1)[0]
        raise InputError("ids", "each id once", f"{shorten(duplicate)} {count} times")
    return column


def count_nodes(num_nodes: int | None, features: Any, ids: Any, edges: NDArray[Any]) -> int:
    """The number of nodes.

    It is the first of these that is given: num_nodes, the length of the features, the length of the
    ids; else the highest row number in ``edges [2, E]`` plus 1.
    """
    if num_nodes is not None:
        n = check_whole_number("num_nodes", num_nodes, 0)
    elif features is not None and not isinstance(features, str):
        n = int(features.shape[0] if hasattr(features, "shape") else len(features))
    elif ids is not None:
        n = len(ids)
    else:
        n = int(edges.max()) + 1 if edges.size else 0
        # Ids used as row numbers would make a graph of mostly isolated nodes, and one id can
        # exhaust the memory.
        most_nodes = max(100_000, 20 * edges.shape[1])
        if n > most_nodes:
            edge_count = format_count(edges.shape[1], "edge")
            expected = f"row numbers below {most_nodes:,}, for {edge_count}"
            remedy = (
                "If these are ids, number the nodes from 0 and give the ids as ids; "
                "else give the number of nodes."
            )
            raise InputError("edges", expected, str(n - 1), remedy)
    if n > MOST_NODES:
        raise InputError("graph", f"at most {MOST_NODES:,} nodes", f"{n:,}")
    return n


def check_ends(edges: ArrayLike) -> NDArray[Any]:
    """The ends ``[2, E]`` of edges, row numbers of nodes."""
    array = check_array("edges", edges, "iu", "row numbers (integers)")
    if array.size == 0:
        return np.zeros((2, 0), dtype=np.int64)
    if array.ndim != 2 or array.shape[0] != 2:
        raise InputError("edges", "an array of shape [2, E]", f"shape {list(array.shape)}")
    return array


def matrix_of_edges(
    edges: NDArray[Any], weight: ArrayLike | None, shape: tuple[int, int]
) -> sparse.coo_array:
    """The matrix ``[S, T]`` of edges ``[2, E]`` from S to T nodes, with weights ``[E]`` or 1.

    Row numbers outside the shape and weights that are no numbers are refused.
    """
    num_edges = edges.shape[1]
    num_nodes = np.array(shape)[:, None]
    if edges.size and (edges.min() < 0 or (edges.max(axis=1, keepdims=True) >= num_nodes).any()):
        is_outside = (edges < 0) | (edges >= num_nodes)
        edge = int(np.argmax(is_outside.any(axis=0)))
        end = int(np.argmax(is_outside[:, edge]))
        expected = f"row numbers from 0 to {shape[end] - 1}"
        raise InputError(f"edges, column {edge}", expected, str(edges[:, edge].tolist()))

    if weight is None:
        values = np.ones(num_edges, dtype=bool)
    else:
        values = check_array("weight", weight, NUMBER_DTYPES, "numbers", np.float32)
    if values.shape != (num_edges,):
        expected = f"{format_count(num_edges, 'number')}, one per edge"
        raise InputError("weight", expected, f"shape {list(values.shape)}")

    # Row numbers of 32 bits take half the memory and half the time of 64 bits. Those without a
    # sign are the same numbers, which need not be copied.
    if edges.dtype == np.uint32:
        rows, columns = edges.view(np.int32)
    else:
        rows, columns = edges.astype(np.int32, copy=False)
    return sparse.coo_array((values, (rows, columns)), shape=shape)


def clean_matrix(
    adjacency: Any, directed: bool, binary: bool, *, between_types: bool = False
) -> tuple[sparse.csr_array, dict[str, int]]:
    """The adjacency ``[S, T]`` as CSR without self-loops, duplicates and zero weights.

    Args:
        adjacency: an array or a matrix of scipy; the weight of the edge from each row to each
            column.
        directed: keep the directions; else the result is symmetric.
        binary: let every entry count as 1.
        between_types: rows and columns are nodes of two types, so no edge is a self-loop.

    Returns:
        The matrix; and how many ``self_loops``, ``duplicates`` and ``zero_weights`` it left out.
    """
    if not sparse.issparse(adjacency):
        adjacency = check_array("adjacency", adjacency, NUMBER_DTYPES, "numbers", np.float32)
    entries = sparse.coo_array(adjacency)
    dtype = bool if entries.dtype == bool else np.float32
    weights = check_array("adjacency", entries.data, NUMBER_DTYPES, "numbers", dtype)
    rows, columns = entries.row, entries.col
    if weights.dtype != bool:
        is_weight = (weights >= 0) & (weights <= MOST_WEIGHT)
        if not is_weight.all():
            entry = int(np.argmin(is_weight))
            location = f"edge {int(rows[entry])} -> {int(columns[entry])}"
            raise InputError(location, WEIGHT, str(weights[entry]))

    is_loop = np.zeros(len(weights), bool) if between_types else rows == columns
    is_left_out = is_loop if binary else is_loop | (weights == 0)
    self_loops = int(np.count_nonzero(is_loop))
    left_out = int(np.count_nonzero(is_left_out))
    if left_out:
        is_kept = ~is_left_out
        weights, rows, columns = weights[is_kept], rows[is_kept], columns[is_kept]

    # Weights of duplicates add up in double precision, as in a graph folder: so no sum depends on
    # the order of rows. Where all count as 1, a bool takes a quarter of the memory of a weight.
    weights = np.ones(len(rows), bool) if binary else weights.astype(np.float64)
    matrix = sparse.coo_array((weights, (rows, columns)), shape=entries.shape).tocsr()
    # An edge listed in both directions is no duplicate: symmetric matrices and PyG's lists hold
    # every edge twice.
    duplicates = len(rows) - int(matrix.nnz)
    if not binary:
        matrix.data = matrix.data.astype(np.float32)
    if not directed:
        matrix = sparse.csr_array(matrix.maximum(matrix.T))
    matrix.data = matrix.data.astype(np.float32, copy=False)
    matrix.sort_indices()
    return matrix, {
        "self_loops": self_loops,
        "duplicates": duplicates,
        "zero_weights": left_out - self_loops,
    }


def check_features(features: Any, n: int) -> Any:
    """Features ``[N, F]`` as float32, dense or CSR, all finite."""
    if sparse.issparse(features):
        # Copied, since the next lines work in place.
        values = sparse.csr_array(features, copy=True)
        values.data = check_array("features", values.data, NUMBER_DTYPES, "numbers", np.float32)
        values.sum_duplicates()
        values.eliminate_zeros()
        numbers = values.data
    else:
        array = check_array("features", features, NUMBER_DTYPES, "numbers", np.float32)
        values = numbers = np.ascontiguousarray(array)
    if values.ndim != 2 or values.shape[0] != n:
        raise InputError("features", f"an array of shape [{n}, F]", f"shape {list(values.shape)}")
    if n == 0:
        raise InputError("graph", "at least one node", "none")
    if not 0 < values.shape[1] <= MOST_FEATURES:
        expected = f"1 to {MOST_FEATURES:,} columns"
        remedy = (
            "Pass None, to make them of the edges; or fewer, for example hashed or projected ones."
        )
        raise InputError("features", expected, f"{values.shape[1]:,}", remedy)
    if not all_finite(numbers):
        entries = sparse.coo_array(values)
        entry = int(np.argmax(~np.isfinite(entries.data)))
        row, column = (int(axis[entry]) for axis in entries.coords)
        location = f"features, row {row}, column {column}"
        raise InputError(location, "a finite number", str(entries.data[entry]))
    return values


def check_feature_names(
    where: str, names: tuple[str, ...], expected: tuple[str, ...], remedy: str = ""
) -> None:
    """Refuse features whose names, or the order of them, differ; the message names one."""
    if names == expected:
        return
    missing = {*expected} - {*names}
    extra = {*names} - {*expected}
    if missing:
        difference = f"no column {min(missing)!r}"
    elif extra:
        difference = f"an unknown column {min(extra)!r}"
    else:
        difference = "another order"
    expected_columns = (
        f"the {len(expected)} feature columns of the graph trained on, in their order"
    )
    raise InputError(where, expected_columns, difference, remedy)


def check_groups(groups: ArrayLike, adjacency: sparse.csr_array) -> NDArray[np.int64]:
    """Groups ``[N]``; refuse an edge between two of them."""
    column = check_column("groups", groups, adjacency.shape[0], "biu", "integers", np.int64)
    entries = adjacency.tocoo()
    is_between = column[entries.row] != column[entries.col]
    if is_between.any():
        first = int(np.argmax(is_between))
        edge = f"one between the rows {entries.row[first]} and {entries.col[first]}"
        raise InputError("groups", "no edge between two groups", edge)
    return column


def check_columns(
    name: str, columns: Any, n: int, check: Callable[[str, Any, int], Any]
) -> dict[str, NDArray[Any]]:
    """A mapping of names to columns, each of them checked; empty for None."""
    if not isinstance(columns, Mapping | None):
        raise InputError(name, "a mapping of names to columns", type(columns).__name__)
    return {key: check(f"{name}[{key!r}]", column, n) for key, column in (columns or {}).items()}


def check_column(
    name: str, column: Any, n: int, dtype_kinds: str, expected: str, dtype: Any = None
) -> NDArray[Any]:
    """A column ``[N]``; for the other arguments see `check_array`."""
    values = check_array(name, column, dtype_kinds, expected, dtype)
    if values.shape != (n,):
        remedy = "Choose one of its columns." if values.ndim == 2 else ""
        expected_values = f"{format_count(n, 'value')}, one per node"
        raise InputError(name, expected_values, f"shape {list(values.shape)}", remedy)
    return values


def check_mask(name: str, mask: ArrayLike, n: int) -> NDArray[np.bool_]:
    """A mask ``[N]`` of booleans, made of booleans or of 0 and 1."""
    values = check_column(name, mask, n, "biuf", "booleans")
    is_wrong = (values != 0) & (values != 1)
    if is_wrong.any():
        raise InputError(name, "booleans, or 0 and 1", str(values[is_wrong][0]))
    return values.astype(bool, copy=False)


def check_labels(name: str, column: ArrayLike, n: int) -> NDArray[Any]:
    """Labels as numbers ``[N]`` or ``[N, C]``, or as str objects ``[N]``.

    Of text, None, NaN and the like become ""; among whole numbers NaN becomes -1.
    """
    values = check_array(name, column, "biufOUSTMm", "text or numbers")
    if values.dtype.kind not in "biuf":
        values = check_column(name, np.asarray(column, dtype=object), n, "O", "text")
        texts = [
            "" if not isinstance(value, str) and str(value) in _MISSING else str(value)
            for value in values
        ]
        return np.array(texts, dtype=object)
    if values.ndim not in (1, 2) or len(values) != n:
        expected = f"{format_count(n, 'row')}, one per node"
        raise InputError(name, expected, f"shape {list(values.shape)}")
    is_missing = np.isnan(values)
    are_integers = bool((values[~is_missing] % 1 == 0).all())
    if is_missing.any() and are_integers:
        # They were stored as floats, since integers have no NaN.
        return np.where(is_missing, -1, values).astype(np.int64)
    return values


def check_names(names: Any, n: int) -> NDArray[Any]:
    """Names of nodes ``[N]`` as str objects; None, NaN and the like become ""."""
    return check_labels("node_names", np.asarray(names, dtype=object), n)


_MISSING = ("None", "nan", "NaT", "<NA>")
"""Missing values as Python, NumPy and pandas write them."""
