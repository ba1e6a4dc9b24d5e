"""What the columns of a node table are and become."""

from __future__ import annotations

import pyarrow as pa

from infomax.arrays.sparsity import dense
from infomax.arrays.structural_features import structural_features_named
from infomax.io.encoding.encoding import Encoding
from infomax.io.encoding.survey import Survey
from infomax.io.record import Record

MOST_NUMBERS_COLUMNS = 50
"""Columns of a table of numbers up to which they are described."""
MOST_ROWS = 1 << 17
"""Rows of a table of numbers from which its columns are described."""


def describe_columns(
    record: Record, most_columns: int = MOST_NUMBERS_COLUMNS, most_rows: int = MOST_ROWS
) -> Encoding | None:
    """The columns of the node table of a record; None where it has none that can be described.

    A table of numbers was taken as it is, and nothing was learnt from it, so its columns are
    surveyed here.

    Args:
        record: the graph, turned to a type of nodes.
        most_columns: of a table of numbers, up to how many columns are surveyed.
        most_rows: from how many rows.
    """
    if record.encoding is not None:
        return record.encoding
    if structural_features_named(record.feature_names) or record.num_features > most_columns:
        return None
    survey = Survey(record.feature_names, {}, list(record.labels))
    block = dense(record.table[:most_rows])
    columns = {
        name: pa.array(values) for name, values in zip(record.feature_names, block.T, strict=True)
    }
    survey.add(columns, lambda row, name: name)
    return survey.finish()[0]
