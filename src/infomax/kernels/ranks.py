"""Several processes that train one model: who they are, what each computes, sums over all of them in a fixed order."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, distributed
from torch.nn.functional import pad

from infomax.errors import InputError

SMALL = 1 << 14
"""Numbers up to which every rank gathers all addends; above, each rank adds a part of them and passes on the sum."""
ALIKE = (
    "Start all processes with the same command, on the same graph, with the run on a shared disk."
)


@dataclass(frozen=True)
class Ranks:
    """The ranks of the default process group, of which this process is one; by default a process alone.

    All methods but `rows` are collective: every rank calls them, in the same order.
    """

    rank: int = 0
    count: int = 1

    @classmethod
    def current(cls) -> Ranks:
        """Return the ranks of the process group, if there is one."""
        if not distributed.is_available() or not distributed.is_initialized():
            return ALONE
        return cls(distributed.get_rank(), distributed.get_world_size())

    @property
    def on_this_host(self) -> int:
        """How many ranks share the memory of this host, as the launcher says."""
        return int(os.environ.get("LOCAL_WORLD_SIZE", "1")) if self.count > 1 else 1

    def rows(self, n: int) -> slice:
        """Which of n rows are this rank's; the ranks have equally many, or one more."""
        return slice(self.rank * n // self.count, (self.rank + 1) * n // self.count)

    def sum(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Add tensors over all ranks, in the order of the ranks: every rank gets the same bits, in every run.

        A collective sum would add in an order of its own.
        """
        if self.count == 1:
            return tensors
        sizes = [tensor.numel() for tensor in tensors]
        padding = tensors[0].new_zeros(-sum(sizes) % self.count)
        flat = torch.cat([*(tensor.reshape(-1) for tensor in tensors), padding])
        total = self._sum(flat.to(_carrier(flat.device.type))).to(flat.device)
        parts = zip(total.split([*sizes, len(padding)]), tensors, strict=False)
        return [part.view(tensor.shape).to(tensor.dtype) for part, tensor in parts]

    def _sum(self, flat: Tensor) -> Tensor:
        """Add vectors ``[n]`` over all ranks; n is a multiple of their number."""
        if len(flat) <= SMALL:
            return _in_order(self._gather(flat))
        mine = torch.empty_like(flat)
        distributed.all_to_all_single(mine, flat)
        return self._gather(_in_order(mine.view(self.count, -1))).view(-1)

    def _gather(self, tensor: Tensor) -> Tensor:
        """Return the tensors of all ranks, ``[ranks, ...]``.

        Each rank sends its tensor to all others at once; gloo's own gather passes them on from rank to rank.
        """
        gathered = tensor.new_empty(self.count, *tensor.shape)
        distributed.all_to_all_single(gathered, tensor.expand_as(gathered).contiguous())
        return gathered

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank."""
        return (
            flag
            if self.count == 1
            else any(map(int, self._gather(torch.tensor([flag], device=_carrier("cpu")))))
        )

    def wait(self) -> None:
        """Wait until every rank is here."""
        self.any(False)

    def texts(self, text: str) -> list[str]:
        """Return the text of each rank."""
        content = torch.frombuffer(bytearray(text.encode() or b" "), dtype=torch.uint8).to(
            _carrier("cpu")
        )
        lengths = [
            int(length)
            for length in self._gather(torch.tensor([len(content)], device=content.device))
        ]
        padded = self._gather(pad(content, (0, max(lengths) - len(content))))
        rows = zip(padded, lengths, strict=True)
        return [bytes(row[:length].cpu().numpy()).decode().strip() for row, length in rows]

    @contextmanager
    def together(self) -> Iterator[dict[str, str]]:
        """Do something on every rank that may fail: if it fails on one, the same InputError is raised on all.

        It yields a dict for values that must be equal on all ranks; they are compared at the end.
        """
        same: dict[str, str] = {}
        mistake: InputError | None = None
        try:
            yield same
        except InputError as error:
            if self.count == 1:
                raise
            mistake = error
        if self.count > 1:
            found = [
                json.loads(text)
                for text in self.texts(json.dumps([mistake.args if mistake else None, same]))
            ]
            for rank, (arguments, _) in enumerate(found):
                if arguments is not None:
                    where, *rest = arguments
                    raise InputError(f"rank {rank}, {where}" if rank else where, *rest) from mistake
            for rank, (_, others) in enumerate(found):
                for name, value in found[0][1].items():
                    if others.get(name) != value:
                        expected = f"{name} {value}, as on rank 0"
                        raise InputError(f"rank {rank}", expected, str(others.get(name)), ALIKE)


ALONE = Ranks()


@dataclass(frozen=True)
class Portion:
    """The nodes of a batch that this rank computes, of all nodes of the batch."""

    nodes: Any
    """Nodes of the batch, on all ranks: a number, or a tensor ``[]``."""
    total: Any
    """Positives and negatives of the batch, on all ranks: as ``nodes``."""
    ranks: Ranks = ALONE
    real: tuple[Tensor, Tensor] | None = None
    """For each row of the positive ``[N]`` and the negative ``[M]``: 1 for a node, 0 for padding. None: all nodes."""

    @classmethod
    def of(cls, nodes: int, ranks: Ranks) -> Portion:
        """Return this rank's portion of a batch with one negative for every node."""
        return cls(nodes, 2 * nodes, ranks)

    @property
    def rows(self) -> slice:
        """This rank's rows of the batch."""
        return self.ranks.rows(self.nodes)

    def sum(self, *tensors: Tensor) -> Sequence[Tensor]:
        """Add small tensors over all ranks; on a CPU in double precision, which all kernels have in common."""
        if self.ranks.count == 1:
            return tensors
        wide = [tensor if tensor.is_cuda else tensor.double() for tensor in tensors]
        return [x.to(tensor.dtype) for x, tensor in zip(self.ranks.sum(wide), tensors, strict=True)]


def _in_order(parts: Tensor) -> Tensor:
    """Add rows one after the other, ``[ranks, n] -> [n]``."""
    total = parts[0].clone()
    for part in parts[1:]:
        total += part
    return total


def _carrier(device: str) -> torch.device | str:
    """The device from which the process group sends tensors of a device: gloo the host's, NCCL a GPU's."""
    backends: dict[str, Any] = dict(
        item.split(":") for item in distributed.get_backend_config().split(",")
    )
    if device == "cuda" and backends.get("cuda") == "nccl":
        return "cuda"
    return "cpu" if backends.get("cpu", "nccl") != "nccl" else "cuda"
