"""The nodes of one type, with their features, labels and splits."""

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
        labels: name -> ``[N]`` str objects ("" for unknown), ``[N]`` integers (-1 for unknown), or
            ``[N, C]`` 0/1 of uint8. Missing values become unknown.
        splits: name ("train", "validation", "test") -> ``[N]`` bool. Where there is one named
            "seen", training sees those nodes and the edges among them, and nothing else.
        groups: ``[N]`` integers, the graph of each node where there are several; no edge joins two
            groups. None: one graph.
        node_names: ``[N]`` str objects to show beside the ids ("" for none). None: nodes have only
            ids.
        encoding: how the features were made of the columns of a table. None: they are the numbers
            that were given.
        times: ``[N]`` int64, since when each row is there, see `infomax.arrays.times`. None: rows
            have no times.
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
        """N checked nodes; features that are None are to be made of the edges.

        `Graph.from_scipy` explains the arguments.
        """
        if n == 0:
            raise InputError("graph", "at least one node", "none")
        if features is None and feature_names is not None:
            raise InputError("feature_names", "features that have these names", "none")
        if features is None:
            values: Any = np.empty((n, 0), np.float32)
        else:
            values = checks.check_features(features, n)
        width = values.shape[1]
        if feature_names is None:
            feature_names = [f"x{column}" for column in range(width)]
        if len(feature_names) != width:
            expected = format_count(width, "name")
            raise InputError("feature_names", expected, str(len(feature_names)))
        if encoding is not None and encoding.feature_names != list(feature_names):
            found = f"{len(encoding.feature_names)} others"
            raise InputError("encoding", "the features of the graph", found)
        if groups is not None:
            groups = checks.check_column("groups", groups, n, "biu", "integers", np.int64)
        return cls(
            table=FeatureTable(values),
            ids=np.arange(n) if ids is None else checks.check_ids(ids, n),
            feature_names=tuple(map(str, feature_names)),
            labels=checks.check_columns("labels", labels, n, checks.check_labels),
            splits=checks.check_columns("splits", splits, n, checks.check_mask),
            groups=groups,
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
        return self._with_rows(FeatureTable(self.table[rows]), rows)

    def loaded(self) -> Nodes:
        """The same nodes with all of their arrays in memory."""
        return self._with_rows(self.table.loaded(), slice(None))

    def _with_rows(self, table: FeatureTable, rows: Any) -> Nodes:
        """The nodes of some rows, whose features are a table."""
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
        is_encoded = self.encoding is not None and not self.encoding.raw
        are_positions = structural_features_named(self.feature_names) == "positions"
        if scale == "auto" and (is_encoded or are_positions):
            scale = "none"
        return self.table.fit_scaler(scale, self.splits.get("seen"))
