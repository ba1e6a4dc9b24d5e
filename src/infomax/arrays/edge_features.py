"""Features of edges: numbers that belong to the edge between two nodes, found by its ends.

They are kept beside an adjacency, not in it. So whatever removes edges, such as holding some out,
leaves them alone, and a corruption that adds edges finds zeros for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from infomax.arrays.checks import check_array, check_ends
from infomax.errors import InputError


@dataclass(frozen=True, eq=False)
class EdgeFeatures:
    """The features of the messages that run along the edges of one relation.

    Shapes:
        message_keys: ``[M]``, ascending: receiver * num_senders + sender
        values: ``[M, F]`` of float32
    """

    message_keys: NDArray[np.int64]
    values: NDArray[np.float32]
    names: tuple[str, ...]
    num_senders: int
    """The number of nodes that could send when the keys were made."""

    @classmethod
    def of(
        cls,
        edges: ArrayLike,
        values: ArrayLike,
        names: Sequence[str] | None,
        *,
        num_nodes: int,
        directed: bool,
    ) -> EdgeFeatures:
        """The features of edges among nodes of one type.

        An edge that is listed several times, or in both directions of an undirected graph, has the
        mean of its rows.

        Args:
            edges: ``[2, E]`` rows of the source and target nodes.
            values: ``[E, F]``, or ``[E]`` for one feature.
            names: F names; None: e0, e1, ...
            num_nodes: N.
            directed: whether messages run from source to target only.
        """
        ends = check_ends(edges)
        numbers = check_array("edge_features", values, "iufb", "numbers", np.float32)
        if numbers.ndim == 1:
            numbers = numbers[:, None]
        if numbers.ndim != 2 or len(numbers) != ends.shape[1]:
            expected = f"one row of numbers for each of the {ends.shape[1]:,} edges"
            raise InputError("edge_features", expected, f"an array of shape {list(numbers.shape)}")
        if not np.isfinite(numbers).all():
            edge = int(np.flatnonzero(~np.isfinite(numbers).all(axis=1))[0])
            remedy = "Fill the gap, or leave this column out."
            raise InputError("edge_features", "finite numbers", f"none at edge {edge}", remedy)
        if names is None:
            feature_names = tuple(f"e{column}" for column in range(numbers.shape[1]))
        else:
            feature_names = tuple(map(str, names))
        if len(feature_names) != numbers.shape[1]:
            expected = f"{numbers.shape[1]} names"
            raise InputError("names of edge_features", expected, str(len(feature_names)))

        senders, receivers = ends
        if not directed:
            # Messages run both ways, so each edge is listed in both directions.
            senders, receivers = np.concatenate([ends, ends[::-1]], axis=1)
            numbers = np.concatenate([numbers, numbers])

        # Rows of one message become one row, their mean.
        keys = receivers.astype(np.int64) * num_nodes + senders
        message_keys, message_of_row = np.unique(keys, return_inverse=True)
        means = _mean_by_group(numbers, message_of_row.reshape(-1), len(message_keys))
        return cls(message_keys, means, feature_names, num_nodes)

    @property
    def num_features(self) -> int:
        """F."""
        return int(self.values.shape[1])

    def of_messages(
        self, senders: NDArray[np.int64], receivers: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """The features ``[E, F]`` of messages; zeros where none are known."""
        features = np.zeros((len(senders), self.num_features), np.float32)
        if len(self.message_keys) == 0:
            return features
        keys = receivers * self.num_senders + senders
        # Of a key that is missing, the search returns the row where it would be inserted.
        rows = np.searchsorted(self.message_keys, keys)
        rows = np.minimum(rows, len(self.message_keys) - 1)
        # A node that was added later has no keys, and its number may give the key of other nodes.
        is_known = (self.message_keys[rows] == keys) & (senders < self.num_senders)
        features[is_known] = self.values[rows[is_known]]
        return features

    def part(self, kept_nodes: NDArray[np.int64]) -> EdgeFeatures:
        """The features of the edges among some nodes, given by their rows in ascending order."""
        receivers, senders = np.divmod(self.message_keys, self.num_senders)
        is_kept = np.isin(receivers, kept_nodes) & np.isin(senders, kept_nodes)
        new_receivers = np.searchsorted(kept_nodes, receivers[is_kept])
        new_senders = np.searchsorted(kept_nodes, senders[is_kept])
        return replace(
            self,
            message_keys=new_receivers * len(kept_nodes) + new_senders,
            values=self.values[is_kept],
            num_senders=len(kept_nodes),
        )


def _mean_by_group(
    rows: NDArray[np.float32], group_of_row: NDArray[np.int64], num_groups: int
) -> NDArray[np.float32]:
    counts = np.bincount(group_of_row, minlength=num_groups)
    means = np.empty((num_groups, rows.shape[1]), np.float32)
    for column in range(rows.shape[1]):
        sums = np.bincount(group_of_row, rows[:, column], num_groups)
        means[:, column] = sums / counts
    return means
