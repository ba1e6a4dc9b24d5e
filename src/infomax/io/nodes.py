"""Nodes: those of one type, with their features, labels and splits."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from infomax.arrays import checks
from infomax.arrays.scaling import Scale, Scaler
from infomax.arrays.structural_features import structural_features_named
from infomax.arrays.table import FeatureTable
from infomax.arrays.times import check_times
from infomax.errors import InputError, format_count
from infomax.io.encoding.encoding import Encoding


@dataclass(frozen=True, eq=False)
class Nodes:
    """N nodes of one type.

    Attributes:
        table: ``[N, F]`` float32, dense or sparse.
        ids: ``[N]``, int64 or str objects, unique, in input order.
        feature_names: F names.
        labels: name -> ``[N]`` str objects ("" = unknown; None and NaN become that) or integers (-1 = unknown; NaN
            among whole numbers becomes that), or ``[N, C]`` 0/1 of uint8.
        splits: name ("train", "validation", "test") -> ``[N]`` bool. Where there is one named "seen", training sees
            those nodes and the edges among them, and nothing else.
        groups: ``[N]`` integers, the graph of each node where there are several; no edge joins two. None: one graph.
        node_names: ``[N]`` str objects to show beside the ids ("" = none). None: nodes have only ids.
        encoding: how its features were made of the columns of a table; None: they were numbers, and are as they were.
        times: ``[N]`` int64, since when each row is there, see `infomax.arrays.times`. None: rows have no times.
    """

    table: FeatureTable
    ids: NDArray[Any]
    feature_names: tuple[str, ...]
    labels: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    splits: Mapping[str, NDArray[np.bool_]] = field(default_factory=dict)
    groups: NDArray[np.int64] | None = None
    node_names: NDArray[Any] | None = None
    encoding: Encoding | None = None
    times: NDArray[np.int64] | None = None

    @classmethod
    def of(
        cls,
        n: int,
        features: Any = None,
        *,
        ids: ArrayLike | None = None,
        feature_names: Sequence[str] | None = None,
        labels: Mapping[str, ArrayLike] | None = None,
        splits: Mapping[str, ArrayLike] | None = None,
        groups: ArrayLike | None = None,
        node_names: ArrayLike | None = None,
        encoding: Encoding | None = None,
        times: ArrayLike | None = None,
    ) -> Nodes:
        """N checked nodes, for the arguments see `Record.from_scipy`; features that are None are to be made."""
        if n == 0:
            raise InputError("graph", "at least one node", "none")
        if features is None and feature_names is not None:
            raise InputError("feature_names", "features that have these names", "none")
        values = (
            np.empty((n, 0), np.float32) if features is None else checks.check_features(features, n)
        )
        if feature_names is None:
            feature_names = [f"x{column}" for column in range(values.shape[1])]
        if len(feature_names) != values.shape[1]:
            raise InputError(
                "feature_names", format_count(values.shape[1], "name"), str(len(feature_names))
            )
        if encoding is not None and encoding.feature_names != list(feature_names):
            raise InputError(
                "encoding", "the features of the graph", f"{len(encoding.feature_names)} others"
            )
        return cls(
            table=FeatureTable(values),
            ids=np.arange(n) if ids is None else checks.check_ids(ids, n),
            feature_names=tuple(map(str, feature_names)),
            labels=checks.check_columns("labels", labels, n, checks.check_labels),
            splits=checks.check_columns("splits", splits, n, checks.check_mask),
            groups=None
            if groups is None
            else checks.check_column("groups", groups, n, "biu", "integers", np.int64),
            node_names=None if node_names is None else checks.check_names(node_names, n),
            encoding=encoding,
            times=None if times is None else check_times(times, n),
        )

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.table)

    @property
    def num_features(self) -> int:
        """F."""
        return self.table.shape[1]

    def part(self, rows: NDArray[np.int64]) -> Nodes:
        """Some of the nodes, by their rows, in memory."""
        return self._taken(FeatureTable(self.table[rows]), rows)

    def loaded(self) -> Nodes:
        """The same nodes with all of their arrays in memory."""
        return self._taken(self.table.loaded(), slice(None))

    def _taken(self, table: FeatureTable, rows: Any) -> Nodes:
        """The nodes of some rows, which have these features."""
        return dataclasses.replace(
            self,
            table=table,
            ids=self.ids[rows],
            labels={name: column[rows] for name, column in self.labels.items()},
            splits={name: column[rows] for name, column in self.splits.items()},
            groups=None if self.groups is None else self.groups[rows],
            node_names=None if self.node_names is None else self.node_names[rows],
            times=None if self.times is None else self.times[rows],
        )

    def scaler(self, scale: Scale) -> Scaler:
        """The scaler of the features, fitted to the nodes that training may see."""
        encoded = self.encoding is not None and not self.encoding.raw
        if scale == "auto" and (
            encoded or structural_features_named(self.feature_names) == "positions"
        ):
            scale = "none"
        return self.table.fit_scaler(scale, self.splits.get("seen"))
