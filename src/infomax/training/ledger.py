"""Records of a training, kept on its device, so that the loop does not wait for them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from infomax.kernels import Backend


class Ledger:
    """The records of recent epochs, and for early stopping the weights with the lowest loss.

    A record has k metrics, of which the first is the loss.

    Shapes:
        sums: ``[k]``, sum of the records of the epoch's steps so far
        curve: ``[capacity, k]``, the mean record of each epoch, stored at epoch modulo capacity
        lowest: ``[]``, the lowest loss
        counts: ``[3]``, number of epochs; epoch of the lowest loss; epochs since then
        kept: the weights with the lowest loss; None without patience
        kept_buffers: what else changed in the parts, at that epoch, such as running means of batch normalisation
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        steps: int,
        patience: int | None,
        shape: tuple[int, int],
        buffers: Callable[[], Iterable[Tensor]] = tuple,
        backend: Backend | None = None,
    ) -> None:
        device = weights[0].device
        self.backend = backend or Backend(device)
        self.steps, self.patience = steps, patience
        self.sums = torch.zeros(shape[1], dtype=torch.float64, device=device)
        self.curve = torch.zeros(shape, dtype=torch.float64, device=device)
        self.lowest = torch.full((), torch.inf, dtype=torch.float64, device=device)
        self.counts = torch.zeros(3, dtype=torch.int64, device=device)
        self.kept = None if patience is None else [weight.detach().clone() for weight in weights]
        self.buffers = tuple if patience is None else buffers  # asked anew, since a part may replace its buffers
        self.kept_buffers = [buffer.clone() for buffer in self.buffers()]

    @property
    def waited(self) -> Tensor:
        """Epochs since the lowest loss; 0 right after an epoch whose loss is the lowest so far."""
        return self.counts[2]

    def add_record(self, record: Tensor, last: bool) -> None:
        """Add the record ``[k]`` of a step; after the last step of an epoch, store the epoch's mean."""
        books = self.sums, self.curve, self.lowest, self.counts
        self.backend.add_record(record, *books, self.steps, self.patience or 0, last)
        for buffer, kept in zip(self.buffers() if last else (), self.kept_buffers, strict=last):
            torch.where(self.waited == 0, buffer, kept, out=kept)

    def read(self, since: int) -> tuple[list[list[float]], int]:
        """Return the records of the epochs from ``since`` on, and the number of epochs since the lowest loss."""
        curve, (epochs, _, waited) = self.curve.tolist(), self.counts.tolist()
        return [curve[epoch % len(curve)] for epoch in range(since, epochs)], waited
