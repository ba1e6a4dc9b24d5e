"""Several processes that train one model: who they are, what each computes, sums over all of them
in a fixed order."""

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

LARGEST_GATHERED = 1 << 14
"""Numbers up to which every rank gathers all addends; above, each rank adds a part of them and
passes on the sum."""
HOW_TO_START = (
    "Start all processes with the same command, on the same graph, with the run on a shared disk."
)


@dataclass(frozen=True)
class Ranks:
    """The ranks of the default process group, of which this process is one; by default a process
    alone.

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
        """Add tensors over all ranks, in the order of the ranks: every rank gets the same bits, in
        every run.

        A collective sum would add in an order of its own.
        """
        if self.count == 1:
            return tensors
        sizes = [tensor.numel() for tensor in tensors]
        padding = tensors[0].new_zeros(-sum(sizes) % self.count)
        flat = torch.cat([*(tensor.reshape(-1) for tensor in tensors), padding])
        carrier = _carrier(flat.device.type)
        flat_sum = self._sum(flat.to(carrier)).to(flat.device)

        *sums, _ = flat_sum.split([*sizes, len(padding)])
        return [
            tensor_sum.view(tensor.shape).to(tensor.dtype)
            for tensor_sum, tensor in zip(sums, tensors, strict=True)
        ]

    def _sum(self, flat: Tensor) -> Tensor:
        """Add vectors ``[n]`` over all ranks; n is a multiple of their number."""
        if len(flat) <= LARGEST_GATHERED:
            return _add_in_order(self._gather(flat))
        # Each rank gets from all ranks the same part of their vectors, adds these, and passes on
        # the sum.
        parts = torch.empty_like(flat)
        distributed.all_to_all_single(parts, flat)
        part_sum = _add_in_order(parts.view(self.count, -1))
        return self._gather(part_sum).view(-1)

    def _gather(self, tensor: Tensor) -> Tensor:
        """Return the tensors of all ranks, ``[ranks, ...]``.

        Each rank sends its tensor to all others at once; gloo's own gather passes them on from rank
        to rank.
        """
        gathered = tensor.new_empty(self.count, *tensor.shape)
        distributed.all_to_all_single(gathered, tensor.expand_as(gathered).contiguous())
        return gathered

    def any(self, flag: bool) -> bool:
        """Whether the flag is set on any rank."""
        if self.count == 1:
            return flag
        flags = self._gather(torch.tensor([flag], device=_carrier("cpu")))
        return any(map(int, flags))

    def wait(self) -> None:
        """Wait until every rank is here."""
        self.any(False)

    def texts(self, text: str) -> list[str]:
        """Return the text of each rank."""
        content = torch.frombuffer(bytearray(text.encode() or b" "), dtype=torch.uint8)
        content = content.to(_carrier("cpu"))
        gathered_lengths = self._gather(torch.tensor([len(content)], device=content.device))
        lengths = list(map(int, gathered_lengths))

        # Ranks can only gather tensors of one length.
        padded_contents = self._gather(pad(content, (0, max(lengths) - len(content))))
        texts = []
        for padded_content, length in zip(padded_contents, lengths, strict=True):
            texts.append(bytes(padded_content[:length].cpu().numpy()).decode().strip())
        return texts

    @contextmanager
    def together(self) -> Iterator[dict[str, str]]:
        """Do something on every rank that may fail: if it fails on one, the same InputError is
        raised on all.

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
        if self.count == 1:
            return

        mistake_of_this_rank = None if mistake is None else mistake.args
        gathered = self.texts(json.dumps([mistake_of_this_rank, same]))
        mistakes, values_of_ranks = zip(*map(json.loads, gathered), strict=True)
        for rank, arguments in enumerate(mistakes):
            if arguments is not None:
                location, *remaining_arguments = arguments
                if rank > 0:
                    location = f"rank {rank}, {location}"
                raise InputError(location, *remaining_arguments) from mistake
        for rank, values in enumerate(values_of_ranks):
            for name, expected_value in values_of_ranks[0].items():
                if values.get(name) != expected_value:
                    expected = f"{name} {expected_value}, as on rank 0"
                    found = str(values.get(name))
                    raise InputError(f"rank {rank}", expected, found, HOW_TO_START)


ALONE = Ranks()


@dataclass(frozen=True)
class Portion:
    """The nodes of a batch that this rank computes, of all nodes of the batch."""

    nodes: Any
    """Nodes of the batch, on all ranks: a number, or a tensor ``[]``."""
    total: Any
    """Positives and negatives of the batch, on all ranks: as ``nodes``."""
    ranks: Ranks = ALONE
    node_mask: tuple[Tensor, Tensor] | None = None
    """For each row of the positive ``[N]`` and the negative ``[M]``: 1 for a node, 0 for padding.
    None: all nodes."""

    @classmethod
    def of(cls, nodes: int, ranks: Ranks) -> Portion:
        """Return this rank's portion of a batch with one negative for every node."""
        return cls(nodes, 2 * nodes, ranks)

    @property
    def rows(self) -> slice:
        """This rank's rows of the batch."""
        return self.ranks.rows(self.nodes)

    def sum(self, *tensors: Tensor) -> Sequence[Tensor]:
        """Add small tensors over all ranks; on a CPU in double precision, which all kernels have in
        common."""
        if self.ranks.count == 1:
            return tensors
        addends = [tensor if tensor.is_cuda else tensor.double() for tensor in tensors]
        sums = self.ranks.sum(addends)
        return [
            tensor_sum.to(tensor.dtype) for tensor_sum, tensor in zip(sums, tensors, strict=True)
        ]


def _add_in_order(addends: Tensor) -> Tensor:
    """Add rows one after the other, ``[ranks, n] -> [n]``."""
    total = addends[0].clone()
    for addend in addends[1:]:
        total += addend
    return total


def _carrier(device: str) -> torch.device | str:
    """The device from which the process group sends tensors of a device: gloo the host's, NCCL a
    GPU's."""
    backends: dict[str, Any] = dict(
        item.split(":") for item in distributed.get_backend_config().split(",")
    )
    if device == "cuda" and backends.get("cuda") == "nccl":
        return "cuda"
    return "cpu" if backends.get("cpu", "nccl") != "nccl" else "cuda"
