"""Exact vectors of nodes: of all of them, pass by pass in blocks of nodes, or of some, by their neighbourhoods."""

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
from infomax.training.own import project
from infomax.training.recipe import Recipe, family
from infomax.views import WholeView
from infomax.views.batch_view import BatchSource, Rows
from infomax.views.stored import StoredTable

BLOCK = {"cpu": 1 << 12, "cuda": 1 << 16}
"""Nodes per block of a graph in memory: few fit into a CPU's cache, many keep a GPU busy."""
BLOCK_ON_DISK = {"cpu": 1 << 14, "cuda": 1 << 18}
"""Nodes per block of a graph folder."""
ROOM_FOR_PASSES = 0.45
"""The share of a GPU's free memory that one pass may take: two of them are kept at a time."""
SINGLE_PRECISION_NODES = 2_000_000
"""Nodes above which what is pooled over two hops is kept in half precision, which rounds by at most 0.05 %: of 111
million nodes, 192 columns of it then take 43 GB on a GPU that would need 85."""
LARGEST_HALF = float(torch.finfo(torch.half).max)


class Embedder:
    """Computes the vectors of the nodes of a graph, exactly. Dropout is switched off.

    A pass is a layer of the encoder, or a hop over which its output and the own part are pooled. Its result is
    ``[N, d]``. It is a tensor where the graph is in memory, or where a GPU has room for it. Else, of a graph on disk,
    it is a file in the folder ``work``, read as a `StoredTable`.

    Args:
        recipe: what vectors are made of.
        view: the graph.
        table: the scaled features, for the own part.
        given: parts that are computed elsewhere: positions, and pooled parts with half-lives.
        work: the folder for files of passes; None: a temporary one.
        single_precision_nodes: see `SINGLE_PRECISION_NODES`.
    """

    def __init__(
        self,
        recipe: Recipe,
        view: WholeView | BatchSource,
        table: Any,
        given: Mapping[str, Any] | None = None,
        work: Path | None = None,
        single_precision_nodes: int = SINGLE_PRECISION_NODES,
    ) -> None:
        self.recipe = recipe
        self.view = view
        self.table = table
        self.given = given or {}
        self.n = view.n
        self.device = view.backend.device
        self.on_disk = isinstance(view, BatchSource)
        self.block = (BLOCK_ON_DISK if self.on_disk else BLOCK)[self.device.type]
        self.halves_hops = self.n > single_precision_nodes

        # A temporary folder is removed with this object.
        self.temporary = TemporaryDirectory() if self.on_disk and work is None else None
        self.work = Path(self.temporary.name) if self.temporary else work or Path()

        encoder = recipe.encoder
        encoder_device = next((parameter.device for parameter in encoder.parameters()), None)
        is_training = any(part.training for part in encoder.modules())
        if is_training or encoder_device != self.device:
            encoder = deepcopy(encoder).to(self.device).eval()
        self.encoder = encoder
        self._encodes = not recipe.parts or "encoder" in recipe.parts

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        graph: Record,
        backend: Backend,
        given: Mapping[str, Any] | None = None,
        work: Path | None = None,
    ) -> Embedder:
        """The embedder of a graph, which is read where it lies."""
        scaled = graph.scaled(recipe.scaler)
        node_type = BatchSource if graph.table.mapped else WholeView
        return cls(
            recipe, node_type.of(scaled, recipe.encoder.rule, backend), scaled.table, given, work
        )

    def prepare(self) -> None:
        """Compute all passes but the last, before several threads ask for rows."""
        self._last  # noqa: B018
        if self.recipe.half_lives:
            self._given("pooled", slice(0))

    def close(self) -> None:
        """Let go of what the passes have left; their functions and this object hold each other."""
        self.__dict__.pop("_last", None)

    def rows(self, start: int, stop: int) -> Tensor:
        """The vectors of nodes start to stop; the first call computes all passes but the last."""
        with torch.no_grad():
            return self._balanced(self._last(start, stop))

    def _balanced(self, vectors: Tensor) -> Tensor:
        """Centre all parts, give them their lengths, and rotate the result."""
        recipe = self.recipe
        if recipe.centre is not None and recipe.factor is not None:
            vectors = (vectors - recipe.centre.to(vectors)) * recipe.factor.to(vectors)
        return vectors if recipe.turn is None else vectors @ recipe.turn.to(vectors)

    def all(self) -> NDArray[np.float32]:
        """The vectors of all nodes."""
        return self._collected(
            lambda start, stop: torch.from_numpy(to_host(self.rows(start, stop)))
        ).numpy()

    def first(self, count: int) -> NDArray[np.float32]:
        """The vectors of the first nodes."""
        return np.concatenate([to_host(self.rows(*ends)) for ends in self.blocks(0, count)])

    def some(self, nodes: NDArray[np.int64], device: torch.device) -> Tensor:
        """The vectors of some nodes, ascending, on a device.

        Of a graph on disk only what they need is read, where no pass over all nodes is needed.
        """
        out = torch.empty(len(nodes), self.recipe.width, device=device)
        needs_passes = self.recipe.hops > 0 or "pooled" in self.recipe.parts
        if isinstance(self.view, BatchSource) and not needs_passes:
            seed = torch.zeros((), dtype=torch.int64, device=self.device)
            for first in range(0, len(nodes), self.block):
                chosen = nodes[first : first + self.block]
                chosen_on_device = torch.from_numpy(chosen).to(self.device)
                view = self.view.view(chosen_on_device, self.encoder.depth, seed)
                with torch.no_grad():
                    made = {"encoder": self.encoder(view)[0]} if self._encodes else {}
                    vectors = self._balanced(self._beside(chosen, made))
                out[first : first + self.block] = vectors
            return out

        for start, stop in self.blocks():
            first, last = np.searchsorted(nodes, [start, stop])
            if first < last:
                vectors = self.rows(start, stop)
                if last - first < stop - start:
                    vectors = vectors[nodes[first:last] - start]
                out[first:last] = vectors
        return out

    @cached_property
    @torch.no_grad()
    def _last(self) -> Rows:
        """Compute all passes but the last; return a function that computes all parts, not yet balanced."""
        recipe = self.recipe
        if recipe.hops:
            return self._over_two_hops()
        passes: dict[str, Rows] = {}
        if self._encodes:
            passes["encoder"] = self._encoder_rows()
        if "pooled" in recipe.parts:
            passes["pooled"] = self._along_paths()
        return lambda start, stop: self._beside(
            slice(start, stop), {part: rows(start, stop) for part, rows in passes.items()}
        )

    def _encoder_rows(self) -> Rows:
        """Compute all layers but the last; return a function that computes the last one."""
        before: Any = None
        for layer in range(self.encoder.depth - 1):
            before = self._keep(f"layer-{layer}", self.n, self._layer(layer, before))
        return self._layer(self.encoder.depth - 1, before)

    def _over_two_hops(self) -> Rows:
        """Pool the encoder's output and the own part over one hop; return a function that pools over the second."""
        recipe = self.recipe
        encoded = self._encoder_rows() if self._encodes else None
        width = self.encoder.out_dim if self._encodes else 0
        pools_own = "pooled" in recipe.parts

        def unpooled_rows(start: int, stop: int) -> Tensor:
            columns = [encoded(start, stop)] if encoded is not None else []
            if pools_own:
                columns.append(self._own(slice(start, stop)))
            return torch.cat(columns, dim=1)

        near = self._keep("near", self.n, unpooled_rows, self.halves_hops)
        encoded = None  # the layer before the last takes as much memory as what follows
        far = self._keep("far", self.n, partial(self.view.pool, near), self.halves_hops)

        def rows(start: int, stop: int) -> Tensor:
            if isinstance(near, Tensor):
                unpooled = near[start:stop].float()
            else:
                unpooled = near.gather(torch.arange(start, stop))
            pooled_twice = self.view.pool(far, start, stop)
            h = unpooled[:, :width]
            made = {"encoder": normalize(h + pooled_twice[:, :width]) if recipe.smooth else h}
            if pools_own:
                made["own"] = unpooled[:, width:]
                made["pooled"] = pooled_twice[:, width:]
            return self._beside(slice(start, stop), made)

        return rows

    def _beside(self, nodes: Any, made: Mapping[str, Tensor]) -> Tensor:
        """All parts of some nodes, a slice or rows, side by side; what the passes have not made is read."""
        parts = []
        for part in dict.fromkeys(map(family, self.recipe.parts or ["encoder"])):
            if part in made:
                parts.append(made[part])
            elif part == "own":
                parts.append(self._own(nodes))
            elif part == "positions":
                parts.append(normalize(self._given(part, nodes)))
            else:
                parts.append(self._given(part, nodes))
        return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)

    def _given(self, part: str, nodes: Any) -> Tensor:
        """A part of some nodes, a slice or rows, that is computed elsewhere."""
        return torch.from_numpy(np.ascontiguousarray(self.given[part][nodes])).to(self.device)

    def _own(self, nodes: Any) -> Tensor:
        """The own part of some nodes, a slice or rows."""
        recipe = self.recipe
        return project(self.table[nodes], recipe.projections[recipe.node_type], self.view.backend)

    def _along_paths(self) -> Rows:
        """A function that computes the own parts at the ends of paths, pooled by means of means."""
        views = cast(Any, self.view.blocks(self._keep))
        recipe = self.recipe
        weights = {  # a tensor for each path, by which a view knows what it has computed
            path: recipe.projections[node_type].clone().to(self.device)
            for node_type, paths in recipe.ends.items()
            for path in paths
        }

        def rows(start: int, stop: int) -> Tensor:
            view = views(start, stop)
            means = [
                [view.pooled(None, weights[path], path) for path in paths]
                for paths in recipe.ends.values()
            ]
            return torch.cat([torch.stack(one).mean(dim=0) for one in means], dim=1)

        return rows

    def _layer(self, k: int, before: Any) -> Rows:
        """A function that computes rows of layer k from the layer before; the first layer reads the features."""
        if self.encoder.needs_whole_graph:
            if not isinstance(self.view, WholeView):
                remedy = "Read it into memory: graph.loaded()."
                raise InputError(
                    "graph",
                    "one in memory, for an encoder of whole graphs",
                    "a graph folder",
                    remedy,
                )
            h = self.encoder.layer(k, self.view.fresh(), before)
            return lambda start, stop: h[start:stop]
        views = self.view.blocks(self._keep)
        return lambda start, stop: self.encoder.layer(k, views(start, stop), before)

    def blocks(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, int]]:
        """Split start to stop, by default the end, into ranges of at most a block."""
        stop = self.n if stop is None else stop
        return ((first, min(first + self.block, stop)) for first in range(start, stop, self.block))

    def _keep(self, name: str, n: int, rows: Rows, half: bool = False) -> Any:
        """Compute n rows and keep them, with ``half`` in half precision.

        They are kept on the device where that holds the graph, else in a file. One that is there already is used: an
        interrupted embedding may have left it.
        """
        if not self.on_disk:
            return self._collected(rows, half)
        path = self.work / f"{name}.npy"
        if self.device.type == "cuda" and not path.exists():
            first = rows(0, min(self.block, n))
            needed = n * first.shape[1] * (2 if half else 4)
            if needed < ROOM_FOR_PASSES * available_bytes(self.device):
                return self._collected(rows, half)

        if not path.exists():
            with replacing(path) as temporary:
                first = _rounded(rows(0, min(self.block, n)), half)
                dtype = np.float16 if half else np.float32
                with ArrayWriter(temporary, dtype, first.shape[1]) as writer:
                    writer.append(first.cpu().numpy())
                    for start, stop in self.blocks(self.block, n):
                        writer.append(_rounded(rows(start, stop), half).cpu().numpy())
        array = np.load(path, mmap_mode="c", allow_pickle=False)
        if self.device.type == "cpu":
            return StoredTable(FeatureTable(array, mapped=True))
        return to_device(array, self.device)

    def _collected(self, rows: Rows, half: bool = False) -> Tensor:
        """The rows of all nodes, computed block by block."""
        # Products of a graph in memory are in single precision: there the numbers are only rounded.
        stays_half = half and self.on_disk
        first = _rounded(rows(0, min(self.block, self.n)), half)
        dtype = first.dtype
        if half and not stays_half:
            dtype = torch.float32
        if len(first) == self.n:
            return first.to(dtype)
        out = torch.empty(self.n, first.shape[1], dtype=dtype, device=first.device)
        out[: len(first)] = first
        for start, stop in self.blocks(len(first)):
            out[start:stop] = _rounded(rows(start, stop), half)
        return out


def _rounded(rows: Tensor, half: bool) -> Tensor:
    """The rows, in half precision if so asked; what is larger than its largest number becomes that."""
    return rows.clamp(-LARGEST_HALF, LARGEST_HALF).half() if half else rows
