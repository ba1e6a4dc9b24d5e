"""Exact vectors of nodes: of all of them, pass by pass in blocks of nodes, or of some, by their neighbourhoods."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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

from infomax.arrays.table import MappedTable, Table
from infomax.errors import InputError
from infomax.graphs.graph import Graph
from infomax.io.array_files import ArrayWriter
from infomax.io.atomic import replacing
from infomax.kernels import Backend, Place
from infomax.kernels.transfer import to_device, to_host
from infomax.parts.encoders import Encoder
from infomax.training.recipe import Recipe, project
from infomax.views import WholeView
from infomax.views.batch_view import BatchSource, Rows
from infomax.views.stored import StoredTable, gather_rows
from infomax.views.view import LayerView

BLOCK = {"cpu": 1 << 12, "cuda": 1 << 16}
"""Nodes per block of a graph in memory: few fit into a CPU's cache, many keep a GPU busy."""
BLOCK_ON_DISK = {"cpu": 1 << 14, "cuda": 1 << 18}
"""Nodes per block of a graph folder."""


class Embedder:
    """Computes the vectors of the nodes of a graph, exactly. Dropout is switched off.

    A pass is a layer of the encoder, or a hop over which its output and the own part are pooled. Its result is
    ``[N, d]``: a tensor, or a file that is read as a `StoredTable`.
    """

    def __init__(self, recipe: Recipe, source: InMemory | OnDisk) -> None:
        self.recipe, self.source, encoder = recipe, source, recipe.encoder
        place = next((parameter.device for parameter in encoder.parameters()), None)
        if any(part.training for part in encoder.modules()) or place != source.device:
            encoder = deepcopy(encoder).to(source.device).eval()
        self.encoder = encoder

    def prepare(self) -> None:
        """Compute all passes but the last, before several threads ask for rows."""
        self._last  # noqa: B018

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
        vectors = _collected(self.source, lambda start, stop: torch.from_numpy(to_host(self.rows(start, stop))))
        return vectors.numpy()

    def first(self, count: int) -> NDArray[np.float32]:
        """The vectors of the first nodes."""
        return np.concatenate([to_host(self.rows(*ends)) for ends in blocks(self.source, 0, count)])

    def of(self, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of some nodes, ascending; of a graph folder, only what they need is read where it can be."""
        out, step = np.empty((len(nodes), self.recipe.width), np.float32), self.source.block
        if isinstance(self.source, OnDisk) and not self.recipe.hops and "pooled" not in self.recipe.parts:
            for start in range(0, len(nodes), step):
                chosen = nodes[start : start + step]
                with torch.no_grad():
                    near = partial(self.source.of, self.encoder, chosen)
                    vectors = self._balanced(self._beside(near, chosen))
                    out[start : start + step] = vectors.cpu().numpy()
            return out
        for start, stop in blocks(self.source):
            here = slice(*np.searchsorted(nodes, [start, stop]))
            if here.start < here.stop:
                out[here] = self.rows(start, stop)[torch.from_numpy(nodes[here] - start)].cpu().numpy()
        return out

    @cached_property
    @torch.no_grad()
    def _last(self) -> Rows:
        """Compute all passes but the last; return a function that computes all parts, not yet balanced."""
        source, recipe = self.source, self.recipe
        encoded: Rows | None = None
        if not recipe.parts or "encoder" in recipe.parts:
            before: Any = None
            for k in range(self.encoder.depth - 1):
                before = source.keep(f"layer-{k}", self._layer(k, before))
            encoded = self._layer(self.encoder.depth - 1, before)
        if not recipe.hops:
            pooled = self._along_paths() if "pooled" in recipe.parts else None
            return lambda start, stop: self._beside(
                partial(encoded, start, stop) if encoded else None,
                slice(start, stop),
                pooled and partial(pooled, start, stop),
            )
        width = self.encoder.out_dim if encoded else 0

        def near_rows(start: int, stop: int) -> Tensor:
            found = [encoded(start, stop)] if encoded else []
            found += [self._own(slice(start, stop))] if "pooled" in recipe.parts else []
            return torch.cat(found, dim=1)

        near = source.keep("near", near_rows)
        far = source.keep("far", partial(source.pool, near))

        def rows(start: int, stop: int) -> Tensor:
            here, there = source.gather(near, start, stop), source.pool(far, start, stop)
            h = here[:, :width]
            smoothed = normalize(h + there[:, :width]) if recipe.smooth else h
            own = here[:, width:] if "pooled" in recipe.parts else None
            return self._beside(lambda: smoothed, slice(start, stop), lambda: there[:, width:], own)

        return rows

    def _beside(
        self,
        encoded: Callable[[], Tensor] | None,
        nodes: Any,
        pooled: Callable[[], Tensor] | None = None,
        own: Tensor | None = None,
    ) -> Tensor:
        """All parts of some nodes, a slice or rows, side by side."""
        found, parts = [], self.recipe.parts
        if encoded is not None and (not parts or "encoder" in parts):
            found.append(encoded())
        if "own" in parts:
            found.append(self._own(nodes) if own is None else own)
        if pooled is not None and "pooled" in parts:
            found.append(pooled())
        if "positions" in parts:
            places = torch.from_numpy(np.ascontiguousarray(self.source.places[nodes]))
            found.append(normalize(places.to(self.source.device)))
        return found[0] if len(found) == 1 else torch.cat(found, dim=1)

    def _own(self, nodes: Any) -> Tensor:
        """The own part of some nodes, a slice or rows."""
        recipe = self.recipe
        return project(self.source.table[nodes], recipe.projections[recipe.kind]).to(self.source.device)

    def _along_paths(self) -> Rows:
        """A function that computes the own parts at the ends of paths, pooled by means of means."""
        views, recipe = cast(Any, self.source.blocks_of_layer()), self.recipe
        weights = {  # a tensor for each path, by which a view knows what it has computed
            path: recipe.projections[kind].clone().to(self.source.device)
            for kind, paths in recipe.ends.items()
            for path in paths
        }

        def rows(start: int, stop: int) -> Tensor:
            view = views(start, stop)
            means = [[view.pooled(None, weights[path], path) for path in paths] for paths in recipe.ends.values()]
            return torch.cat([torch.stack(one).mean(dim=0) for one in means], dim=1)

        return rows

    def _layer(self, k: int, before: Any) -> Rows:
        """A function that computes rows of layer k from the layer before; the first layer reads the features."""
        if self.encoder.whole:
            h = self.encoder.layer(k, self.source.whole(), before)
            return lambda start, stop: h[start:stop]
        views = self.source.blocks_of_layer()
        return lambda start, stop: self.encoder.layer(k, views(start, stop), before)


class InMemory:
    """A whole graph in memory, as an `Embedder` reads it. One product H Θ per layer serves all blocks."""

    def __init__(self, view: WholeView, table: Table, places: Any = None) -> None:
        self.view, self.n, self.device, self.places = view, view.n, view.backend.device, places
        self.table: Any = table  # the scaled features, for the own part
        self.block = BLOCK[self.device.type]

    def blocks_of_layer(self) -> Callable[[int, int], LayerView]:
        """A function of (start, stop) that returns the view of these nodes, for one pass; all share its products."""
        return self.view.blocks()

    def whole(self) -> Any:
        """The view of all nodes, for one pass."""
        return self.view.fresh()

    def gather(self, table: Tensor, start: int, stop: int) -> Tensor:
        """Rows start to stop of the result of a pass."""
        return table[start:stop]

    def pool(self, table: Tensor, start: int, stop: int) -> Tensor:
        """Rows start to stop of P times the result of a pass."""
        return self.view.pool(table, start, stop)

    def keep(self, name: str, rows: Rows) -> Tensor:
        """Compute the rows of all nodes, and keep them."""
        return _collected(self, rows)


class OnDisk:
    """A graph folder, with or without new nodes, read as `InMemory` is. Results are files in the folder ``work``.

    A CPU reads the rows that a block needs. A GPU holds the whole graph, with its features in half precision where that
    rounds little; see `to_gather`.
    """

    def __init__(
        self, graph: Graph, recipe: Recipe, place: Place, work: Path | None = None, places: Any = None
    ) -> None:
        backend, self.places = Backend.of(place), places
        self.n, self.device, self.block = graph.num_nodes, backend.device, BLOCK_ON_DISK[backend.device.type]
        scaled = graph.scaled(recipe.scaler)
        self.table: Any = scaled.table
        self.source = BatchSource.of(scaled, recipe.encoder.rule, backend)
        self.temporary = TemporaryDirectory() if work is None else None  # removed with this object
        self.work = Path(self.temporary.name) if self.temporary else cast(Path, work)

    def blocks_of_layer(self) -> Callable[[int, int], LayerView]:
        """Views of blocks that read what they need."""
        views = self.source.of_rows(self._keep)
        return lambda start, stop: views(self._nodes(start, stop))

    def whole(self) -> Any:
        """Refuse: rows are read when a block needs them."""
        remedy = "Read it into memory: graph.loaded()."
        raise InputError("graph", "one in memory, for an encoder of whole graphs", "a graph folder", remedy)

    def gather(self, table: Any, start: int, stop: int) -> Tensor:
        """Rows start to stop."""
        return gather_rows(table, self._nodes(start, stop))

    def pool(self, table: Any, start: int, stop: int) -> Tensor:
        """Rows start to stop of P times a table."""
        return self.source.pool(table, self._nodes(start, stop))

    def keep(self, name: str, rows: Rows) -> Any:
        """Write the rows of all nodes to a file, if it does not exist."""
        return self._keep(name, self.n, rows)

    def _keep(self, name: str, n: int, rows: Rows) -> Any:
        if not self._path(name).exists():  # an interrupted embedding may have left it
            with replacing(self._path(name)) as temporary:
                first = rows(0, min(self.block, n))
                with ArrayWriter(temporary, np.float32, first.shape[1]) as writer:
                    writer.append(first.cpu().numpy())
                    for start, stop in blocks(self, self.block, n):
                        writer.append(rows(start, stop).cpu().numpy())
        array = np.load(self._path(name), mmap_mode="c", allow_pickle=False)
        return StoredTable(MappedTable(array)) if self.device.type == "cpu" else to_device(array, self.device)

    def of(self, encoder: Encoder, nodes: NDArray[np.int64]) -> Tensor:
        """H of some nodes; a deep encoder expands their neighbourhoods hop by hop."""
        seed = torch.zeros((), dtype=torch.int64, device=self.device)
        vectors: Tensor = encoder(self.source.view(torch.from_numpy(nodes).to(self.device), encoder.depth, seed))[0]
        return vectors

    def _nodes(self, start: int, stop: int) -> Tensor:
        return torch.arange(start, stop, device=self.device)

    def _path(self, name: str) -> Path:
        return self.work / f"{name}.npy"


def blocks(source: InMemory | OnDisk, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, int]]:
    """Split start to stop, by default the end, into ranges of at most a block."""
    stop = source.n if stop is None else stop
    return ((first, min(first + source.block, stop)) for first in range(start, stop, source.block))


def _collected(source: InMemory | OnDisk, rows: Rows) -> Tensor:
    """The rows of all nodes, computed block by block."""
    first = rows(0, min(source.block, source.n))
    if len(first) == source.n:
        return first
    out = first.new_empty(source.n, first.shape[1])
    out[: len(first)] = first
    for start, stop in blocks(source, len(first)):
        out[start:stop] = rows(start, stop)
    return out
