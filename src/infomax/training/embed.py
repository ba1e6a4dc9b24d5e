"""Exact vectors of nodes: of all nodes, block by block, or of some, by their neighbourhoods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cached_property, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.functional import normalize

from infomax.arrays.table import FeatureTable
from infomax.errors import InputError
from infomax.io.array_files import ArrayWriter
from infomax.io.atomic import replacing
from infomax.io.record import Record
from infomax.kernels import Backend
from infomax.kernels.room import available_bytes
from infomax.kernels.transfer import to_device, to_host
from infomax.training.own_features import project
from infomax.training.recipe import Recipe, part_family
from infomax.views import WholeView
from infomax.views.batch_view import BatchSource, Rows
from infomax.views.stored import StoredTable

NODES_PER_BLOCK = {"cpu": 1 << 12, "cuda": 1 << 16}
"""Nodes per block of a graph in memory: few fit into a CPU's cache, many keep a GPU busy."""
NODES_PER_BLOCK_ON_DISK = {"cpu": 1 << 14, "cuda": 1 << 18}
"""Nodes per block of a graph folder."""
ROOM_FOR_PASSES = 0.45
"""The share of a GPU's free memory that one pass may take: two of them are kept at a time."""
SINGLE_PRECISION_NODES = 2_000_000
"""Nodes above which what is pooled over two hops is kept in half precision.

It rounds by at most 0.05 %. Of 111 million nodes, 192 columns of it then take 43 GB on a GPU that
would need 85.
"""
LARGEST_HALF = float(torch.finfo(torch.half).max)


class Embedder:
    """Computes the vectors of the nodes of a graph, exactly. Dropout is switched off.

    A pass is a layer of the encoder, or a hop over which its output and the own part are pooled.
    Its result is ``[N, d]``. It is a tensor where the graph is in memory, or where a GPU has room
    for it. Else, of a graph on disk, it is a file in ``work_folder``, read as a `StoredTable`.

    Args:
        recipe: what vectors are made of.
        view: the graph.
        table: the scaled features, for the own part.
        outside_parts: parts ``[N, K]`` that are computed elsewhere: positions, and pooled parts
            with half-lives.
        work_folder: the folder for files of passes; None: a temporary one.
        single_precision_nodes: see `SINGLE_PRECISION_NODES`.
        nodes_per_block: nodes whose vectors are computed at a time; None: by `NODES_PER_BLOCK`, or
            of a graph on disk by `NODES_PER_BLOCK_ON_DISK`.
    """

    def __init__(
        self,
        recipe: Recipe,
        view: WholeView | BatchSource,
        table: Any,
        outside_parts: Mapping[str, Any] | None = None,
        work_folder: Path | None = None,
        single_precision_nodes: int = SINGLE_PRECISION_NODES,
        nodes_per_block: int | None = None,
    ) -> None:
        self.recipe = recipe
        self.view = view
        self.table = table
        self.outside_parts = outside_parts or {}
        self.n = view.n
        self.device = view.backend.device
        self.on_disk = isinstance(view, BatchSource)
        if nodes_per_block is None:
            block_sizes = NODES_PER_BLOCK_ON_DISK if self.on_disk else NODES_PER_BLOCK
            nodes_per_block = block_sizes[self.device.type]
        self.nodes_per_block = nodes_per_block
        self.halves_hops = self.n > single_precision_nodes

        # A temporary folder is removed with this object.
        self.temporary: TemporaryDirectory[str] | None = None
        if self.on_disk and work_folder is None:
            self.temporary = TemporaryDirectory()
            work_folder = Path(self.temporary.name)
        self.work_folder = work_folder or Path()

        # The encoder of the recipe stays as it is: it may be in training, or on another device.
        encoder = recipe.encoder
        encoder_device = next((parameter.device for parameter in encoder.parameters()), None)
        is_training = any(part.training for part in encoder.modules())
        if is_training or encoder_device != self.device:
            encoder = deepcopy(encoder).to(self.device).eval()
        self.encoder = encoder
        self._has_encoder_part = not recipe.parts or "encoder" in recipe.parts

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        graph: Record,
        backend: Backend,
        outside_parts: Mapping[str, Any] | None = None,
        work_folder: Path | None = None,
        nodes_per_block: int | None = None,
    ) -> Embedder:
        """The embedder of a graph, in memory or on disk."""
        scaled = graph.scaled(recipe.scaler)
        view_class = BatchSource if graph.table.mapped else WholeView
        view = view_class.of(scaled, recipe.encoder.rule, backend)
        return cls(
            recipe,
            view,
            scaled.table,
            outside_parts,
            work_folder,
            nodes_per_block=nodes_per_block,
        )

    # What callers ask for

    def rows(self, start: int, stop: int) -> Tensor:
        """The vectors of nodes start to stop; the first call computes all passes but the last."""
        with torch.no_grad():
            return self._balance(self._last_pass(start, stop))

    def all(self) -> NDArray[np.float32]:
        """The vectors of all nodes."""

        def rows_on_host(start: int, stop: int) -> Tensor:
            return torch.from_numpy(to_host(self.rows(start, stop)))

        return self._collect(self.n, rows_on_host).numpy()

    def first(self, count: int) -> NDArray[np.float32]:
        """The vectors of the first nodes."""
        blocks = self.blocks(0, count)
        return np.concatenate([to_host(self.rows(start, stop)) for start, stop in blocks])

    def some(self, nodes: NDArray[np.int64], device: torch.device) -> Tensor:
        """The vectors of some nodes, ascending, on a device.

        Of a graph on disk only the rows around them are read, where no pass over all nodes is
        needed.
        """
        vectors = torch.empty(len(nodes), self.recipe.width, device=device)
        needs_passes = self.recipe.hops > 0 or "pooled" in self.recipe.parts
        if isinstance(self.view, BatchSource) and not needs_passes:
            seed = torch.zeros((), dtype=torch.int64, device=self.device)
            for first in range(0, len(nodes), self.nodes_per_block):
                batch = nodes[first : first + self.nodes_per_block]
                batch_on_device = torch.from_numpy(batch).to(self.device)
                view = self.view.view(batch_on_device, self.encoder.depth, seed)
                computed: dict[str, Tensor] = {}
                with torch.no_grad():
                    if self._has_encoder_part:
                        computed["encoder"] = self.encoder(view)[0]
                    rows = self._balance(self._join_parts(batch, computed))
                vectors[first : first + self.nodes_per_block] = rows
            return vectors

        for start, stop in self.blocks():
            first, last = np.searchsorted(nodes, [start, stop])
            if first < last:
                rows = self.rows(start, stop)
                if last - first < stop - start:
                    rows = rows[nodes[first:last] - start]
                vectors[first:last] = rows
        return vectors

    def prepare(self) -> None:
        """Compute all passes but the last, before several threads ask for rows."""
        self._last_pass  # noqa: B018
        if self.recipe.half_lives:
            self._outside_part("pooled", slice(0))

    def close(self) -> None:
        """Free the results of the passes.

        The functions that compute rows refer to this object, and it to them, so neither would be
        freed before a garbage collection.
        """
        self.__dict__.pop("_last_pass", None)

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, int]]:
        """Split start to stop, by default the end, into ranges of at most a block."""
        stop = self.n if stop is None else stop
        return (
            (first, min(first + self.nodes_per_block, stop))
            for first in range(start, stop, self.nodes_per_block)
        )

    # Passes

    @cached_property
    @torch.no_grad()
    def _last_pass(self) -> Rows:
        """Compute all passes but the last; return a function that computes rows of all parts.

        They are not yet balanced.
        """
        if self.recipe.hops:
            return self._over_two_hops()
        passes: dict[str, Rows] = {}
        if self._has_encoder_part:
            passes["encoder"] = self._encoder_rows()
        if "pooled" in self.recipe.parts:
            passes["pooled"] = self._along_paths()

        def rows(start: int, stop: int) -> Tensor:
            computed = {part: part_rows(start, stop) for part, part_rows in passes.items()}
            return self._join_parts(slice(start, stop), computed)

        return rows

    def _encoder_rows(self) -> Rows:
        """Compute all layers but the last; return a function that computes the last one."""
        before: Any = None
        last_layer = self.encoder.depth - 1
        for layer in range(last_layer):
            before = self._keep(f"layer-{layer}", self.n, self._layer(layer, before))
        return self._layer(last_layer, before)

    def _layer(self, k: int, before: Any) -> Rows:
        """A function that computes rows of layer k from the rows of the layer before.

        The first layer reads the features.
        """
        if not self.encoder.needs_whole_graph:
            views = self.view.blocks(self._keep)
            return lambda start, stop: self.encoder.layer(k, views(start, stop), before)

        if not isinstance(self.view, WholeView):
            expected = "one in memory, for an encoder of whole graphs"
            remedy = "Read it into memory: graph.loaded()."
            raise InputError("graph", expected, "a graph folder", remedy)
        h = self.encoder.layer(k, self.view.fresh(), before)
        return lambda start, stop: h[start:stop]

    def _over_two_hops(self) -> Rows:
        """Pool the encoder's output and the own part over one hop.

        Returns a function that pools over the second. Both are pooled side by side, so that the
        edges are read once for each hop.
        """
        recipe = self.recipe
        encoder_rows: Rows | None = None
        encoder_width = 0
        if self._has_encoder_part:
            encoder_rows = self._encoder_rows()
            encoder_width = self.encoder.out_dim
        pools_own_part = "pooled" in recipe.parts

        def unpooled_rows(start: int, stop: int) -> Tensor:
            columns: list[Tensor] = []
            if encoder_rows is not None:
                columns.append(encoder_rows(start, stop))
            if pools_own_part:
                columns.append(self._own_part(slice(start, stop)))
            return torch.cat(columns, dim=1)

        unpooled = self._keep("near", self.n, unpooled_rows, self.halves_hops)
        # The layer before the last takes as much memory as the passes that follow.
        encoder_rows = None
        pooled_rows = partial(self.view.pool, unpooled)
        pooled_once = self._keep("far", self.n, pooled_rows, self.halves_hops)

        def rows(start: int, stop: int) -> Tensor:
            if isinstance(unpooled, Tensor):
                own_rows = unpooled[start:stop].float()
            else:
                own_rows = unpooled.gather(torch.arange(start, stop))
            pooled_twice = self.view.pool(pooled_once, start, stop)

            h = own_rows[:, :encoder_width]
            if recipe.smooth:
                h = normalize(h + pooled_twice[:, :encoder_width])
            computed = {"encoder": h}
            if pools_own_part:
                computed["own"] = own_rows[:, encoder_width:]
                computed["pooled"] = pooled_twice[:, encoder_width:]
            return self._join_parts(slice(start, stop), computed)

        return rows

    def _along_paths(self) -> Rows:
        """A function that computes the own parts at the ends of paths, pooled by means of means."""
        views = cast(Any, self.view.blocks(self._keep))
        recipe = self.recipe
        # A tensor for each path: a view knows by the tensor what it has computed already.
        projections = {
            path: recipe.projections[node_type].clone().to(self.device)
            for node_type, paths in recipe.paths_by_end_type.items()
            for path in paths
        }

        def rows(start: int, stop: int) -> Tensor:
            view = views(start, stop)
            means_of_types: list[Tensor] = []
            for paths in recipe.paths_by_end_type.values():
                means = [view.pooled(None, projections[path], path) for path in paths]
                means_of_types.append(torch.stack(means).mean(dim=0))
            return torch.cat(means_of_types, dim=1)

        return rows

    # Parts

    def _join_parts(self, nodes: Any, computed: Mapping[str, Tensor]) -> Tensor:
        """All parts of some nodes, a slice or rows, side by side.

        Parts that the passes have not computed are computed here, or read.
        """
        parts: list[Tensor] = []
        # By family: pooled parts of all half-lives are one array.
        for part in dict.fromkeys(map(part_family, self.recipe.parts or ["encoder"])):
            if part in computed:
                parts.append(computed[part])
            elif part == "own":
                parts.append(self._own_part(nodes))
            elif part == "positions":
                parts.append(normalize(self._outside_part(part, nodes)))
            else:
                parts.append(self._outside_part(part, nodes))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _own_part(self, nodes: Any) -> Tensor:
        """The own part of some nodes, a slice or rows."""
        projection = self.recipe.projections[self.recipe.node_type]
        return project(self.table[nodes], projection, self.view.backend)

    def _outside_part(self, part: str, nodes: Any) -> Tensor:
        """A part of some nodes, a slice or rows, that is computed elsewhere."""
        rows = np.ascontiguousarray(self.outside_parts[part][nodes])
        return torch.from_numpy(rows).to(self.device)

    def _balance(self, vectors: Tensor) -> Tensor:
        """Centre all parts, give them their lengths, and rotate the result."""
        recipe = self.recipe
        if recipe.centre is not None and recipe.factor is not None:
            vectors = (vectors - recipe.centre.to(vectors)) * recipe.factor.to(vectors)
        if recipe.rotation is not None:
            vectors = vectors @ recipe.rotation.to(vectors)
        return vectors

    # Results of passes

    def _keep(self, name: str, n: int, rows: Rows, half: bool = False) -> Any:
        """Compute n rows and keep them, with ``half`` in half precision.

        They are kept on the device where that holds the graph, else in a file. A file that exists
        already is used: an interrupted embedding may have left it.
        """
        if not self.on_disk:
            return self._collect(n, rows, half)
        path = self.work_folder / f"{name}.npy"
        if self.device.type == "cuda" and not path.exists():
            first_rows = rows(0, min(self.nodes_per_block, n))
            needed_bytes = n * first_rows.shape[1] * (2 if half else 4)
            if needed_bytes < ROOM_FOR_PASSES * available_bytes(self.device):
                return self._collect(n, rows, half)

        if not path.exists():
            with replacing(path) as temporary:
                first_rows = _rounded(rows(0, min(self.nodes_per_block, n)), half)
                dtype = np.float16 if half else np.float32
                with ArrayWriter(temporary, dtype, first_rows.shape[1]) as writer:
                    writer.append(first_rows.cpu().numpy())
                    for start, stop in self.blocks(self.nodes_per_block, n):
                        writer.append(_rounded(rows(start, stop), half).cpu().numpy())
        array = np.load(path, mmap_mode="c", allow_pickle=False)
        if self.device.type == "cpu":
            return StoredTable(FeatureTable(array, mapped=True))
        return to_device(array, self.device)

    def _collect(self, n: int, rows: Rows, half: bool = False) -> Tensor:
        """Compute n rows block by block; n is that of another type within a path of types."""
        first_rows = _rounded(rows(0, min(self.nodes_per_block, n)), half)
        # Products of a graph in memory are in single precision: there the numbers are only rounded.
        dtype = first_rows.dtype if self.on_disk or not half else torch.float32
        if len(first_rows) == n:
            return first_rows.to(dtype)
        collected = torch.empty(n, first_rows.shape[1], dtype=dtype, device=first_rows.device)
        collected[: len(first_rows)] = first_rows
        for start, stop in self.blocks(len(first_rows), n):
            collected[start:stop] = _rounded(rows(start, stop), half)
        return collected


def _rounded(rows: Tensor, half: bool) -> Tensor:
    """The rows, with ``half`` in half precision, cut off at its largest number."""
    return rows.clamp(-LARGEST_HALF, LARGEST_HALF).half() if half else rows
