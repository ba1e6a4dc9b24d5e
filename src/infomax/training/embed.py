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

from infomax.arrays.table import Table
from infomax.errors import InputError
from infomax.io.array_files import ArrayWriter
from infomax.io.atomic import replacing
from infomax.io.record import Record
from infomax.kernels import Backend
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


class Embedder:
    """Computes the vectors of the nodes of a graph, exactly. Dropout is switched off.

    A pass is a layer of the encoder, or a hop over which its output and the own part are pooled. Its result is
    ``[N, d]``: a tensor where the graph is in memory. Where it is on disk, with or without new nodes, it is a file in
    the folder ``work``, read as a `StoredTable`; a CPU reads the rows that a block needs, a GPU holds the whole graph.

    ``table`` has the scaled features, for the own part; ``given`` are parts that are computed elsewhere: positions, and
    pooled parts with half-lives.
    """

    def __init__(
        self,
        recipe: Recipe,
        view: WholeView | BatchSource,
        table: Any,
        given: Mapping[str, Any] | None = None,
        work: Path | None = None,
    ) -> None:
        self.recipe, self.view, self.table, self.given = recipe, view, table, given or {}
        self.n, self.device, self.on_disk = (
            view.n,
            view.backend.device,
            isinstance(view, BatchSource),
        )
        self.block = (BLOCK_ON_DISK if self.on_disk else BLOCK)[self.device.type]
        self.temporary = (
            TemporaryDirectory() if self.on_disk and work is None else None
        )  # removed with this object
        self.work = Path(self.temporary.name) if self.temporary else work or Path()
        encoder = recipe.encoder
        place = next((parameter.device for parameter in encoder.parameters()), None)
        if any(part.training for part in encoder.modules()) or place != self.device:
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
        """The vectors of some nodes, ascending, on a device; of a graph on disk, only what they need is read where it
        can be.
        """
        out = torch.empty(len(nodes), self.recipe.width, device=device)
        if (
            isinstance(self.view, BatchSource)
            and not self.recipe.hops
            and "pooled" not in self.recipe.parts
        ):
            seed = torch.zeros((), dtype=torch.int64, device=self.device)
            for start in range(0, len(nodes), self.block):
                chosen = nodes[start : start + self.block]
                view = self.view.view(
                    torch.from_numpy(chosen).to(self.device), self.encoder.depth, seed
                )
                with torch.no_grad():
                    made = {"encoder": self.encoder(view)[0]} if self._encodes else {}
                    vectors = self._balanced(self._beside(chosen, made))
                out[start : start + self.block] = vectors
            return out
        for start, stop in self.blocks():
            first, last = np.searchsorted(nodes, [start, stop])
            if first < last:
                found = self.rows(start, stop)
                out[first:last] = (
                    found if last - first == stop - start else found[nodes[first:last] - start]
                )
        return out

    @cached_property
    @torch.no_grad()
    def _last(self) -> Rows:
        """Compute all passes but the last; return a function that computes all parts, not yet balanced."""
        recipe = self.recipe
        encoded: Rows | None = None
        if self._encodes:
            before: Any = None
            for k in range(self.encoder.depth - 1):
                before = self._keep(f"layer-{k}", self.n, self._layer(k, before))
            encoded = self._layer(self.encoder.depth - 1, before)
        if not recipe.hops:
            made = {"encoder": encoded} if encoded else {}
            made |= {"pooled": self._along_paths()} if "pooled" in recipe.parts else {}
            return lambda start, stop: self._beside(
                slice(start, stop), {part: rows(start, stop) for part, rows in made.items()}
            )
        width = self.encoder.out_dim if encoded else 0

        def near_rows(start: int, stop: int) -> Tensor:
            found = [encoded(start, stop)] if encoded else []
            found += [self._own(slice(start, stop))] if "pooled" in recipe.parts else []
            return torch.cat(found, dim=1)

        near = self._keep("near", self.n, near_rows)
        far = self._keep("far", self.n, partial(self.view.pool, near))

        def rows(start: int, stop: int) -> Tensor:
            here = (
                near[start:stop]
                if isinstance(near, Tensor)
                else near.gather(torch.arange(start, stop))
            )
            there = self.view.pool(far, start, stop)
            h = here[:, :width]
            smoothed = normalize(h + there[:, :width]) if recipe.smooth else h
            both = (
                {"own": here[:, width:], "pooled": there[:, width:]}
                if "pooled" in recipe.parts
                else {}
            )
            return self._beside(slice(start, stop), {"encoder": smoothed, **both})

        return rows

    def _beside(self, nodes: Any, made: Mapping[str, Tensor]) -> Tensor:
        """All parts of some nodes, a slice or rows, side by side; what the passes have not made is read."""
        found = []
        for part in dict.fromkeys(map(family, self.recipe.parts or ["encoder"])):
            if part in made:
                found.append(made[part])
            elif part == "own":
                found.append(self._own(nodes))
            else:
                given = self._given(part, nodes)
                found.append(normalize(given) if part == "positions" else given)
        return found[0] if len(found) == 1 else torch.cat(found, dim=1)

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
        if self.encoder.whole:
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

    def _keep(self, name: str, n: int, rows: Rows) -> Any:
        """Compute n rows, and keep them: in memory, or in a file, unless it is there already."""
        if not self.on_disk:
            return self._collected(rows)
        path = self.work / f"{name}.npy"
        if not path.exists():  # an interrupted embedding may have left it
            with replacing(path) as temporary:
                first = rows(0, min(self.block, n))
                with ArrayWriter(temporary, np.float32, first.shape[1]) as writer:
                    writer.append(first.cpu().numpy())
                    for start, stop in self.blocks(self.block, n):
                        writer.append(rows(start, stop).cpu().numpy())
        array = np.load(path, mmap_mode="c", allow_pickle=False)
        return (
            StoredTable(Table(array, mapped=True))
            if self.device.type == "cpu"
            else to_device(array, self.device)
        )

    def _collected(self, rows: Rows) -> Tensor:
        """The rows of all nodes, computed block by block."""
        first = rows(0, min(self.block, self.n))
        if len(first) == self.n:
            return first
        out = first.new_empty(self.n, first.shape[1])
        out[: len(first)] = first
        for start, stop in self.blocks(len(first)):
            out[start:stop] = rows(start, stop)
        return out
