"""The only loop: five steps an iteration, whatever the regime. Stopping, history, and a state that can be resumed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import Tensor

from infomax.contrast import Model, Objective, contrast
from infomax.errors import InputError
from infomax.replay import Replay
from infomax.views import Views

PAUSE_SECONDS = 1.0
"""How long an epoch of many steps runs before it pauses, to be shown, saved or interrupted."""


@dataclass(frozen=True)
class Record:
    """What an epoch looked like: means over its steps."""

    loss: float
    accuracy: float
    """Share of positives and negatives that the discriminator tells rightly."""
    spread: float
    """Standard deviation over the entries of the summary."""


class Best:
    """Early stopping: the weights that produced the lowest loss, chosen on the device without asking the host."""

    def __init__(self, model: Model, patience: int, device: torch.device) -> None:
        self.patience = patience
        self.parameters: list[Tensor] = list(model.parameters())
        self.weights = [parameter.detach().clone() for parameter in self.parameters]
        self.loss = torch.full((), torch.inf, device=device, dtype=torch.float64)
        self.offers, self.epoch, self.waited = torch.zeros(3, dtype=torch.int64, device=device).unbind()

    @torch.no_grad()
    def offer(self, loss: Tensor) -> None:
        """Keep the present weights if their loss is the lowest so far and patience has not run out."""
        better = (loss < self.loss) & (self.waited < self.patience)
        torch.where(better, loss, self.loss, out=self.loss)
        torch.where(better, self.offers, self.epoch, out=self.epoch)
        self.waited.copy_(torch.where(better, 0, self.waited + 1))
        self.offers += 1
        if loss.is_cuda:
            for kept, now in zip(self.weights, self.parameters, strict=True):
                torch.where(better, now, kept, out=kept)
        elif better:
            torch._foreach_copy_(self.weights, self.parameters)


class Training:
    """One training: its parts, its optimiser, and how far it has come.

    Nothing of an epoch waits for the device; with ``replayable`` parts a GPU replays the step it has recorded. The
    history is read back every `stride` epochs; epochs that ran past the stop by then are forgotten, so the result does
    not depend on the stride.
    """

    def __init__(
        self,
        model: Model,
        views: Views,
        objective: Objective,
        *,
        lr: float,
        epochs: int,
        patience: int | None,
        generator: torch.Generator,
        replayable: bool = False,
    ) -> None:
        self.model, self.views, self.objective, self.generator = model, views, objective, generator
        self.epochs, self.patience = epochs, patience
        self.device = generator.device
        gpu = self.device.type == "cuda"
        self.stride = 32 if gpu and views.steps == 1 else 1
        self.optimiser = torch.optim.Adam(model.parameters(), lr=lr, fused=True, capturable=gpu)
        self.record = torch.zeros(3, device=self.device, dtype=torch.float64)
        self.step = Replay(self._step, generator) if gpu and replayable and views.uniform else self._step
        self.best = None if patience is None else Best(model, patience, self.device)
        self.history: list[Record] = []
        self.position, self.epoch_began = 0, generator.get_state()
        self.paused = time.monotonic()
        self.seconds = 0.0
        self.finished = epochs == 0

    def run(self, pause: Callable[[Training], None] = lambda training: None) -> None:
        """Train to the end; ``pause`` is called whenever the history has been read back, and within long epochs."""
        while not self.finished:
            began = time.perf_counter()
            stop = min(len(self.history) + self.stride, self.epochs)
            with tensor_cores():
                self._read_back([self._epoch(pause) for _ in range(len(self.history), stop)])
            self.seconds += time.perf_counter() - began
            pause(self)
        if self.best is not None:
            with torch.no_grad():
                torch._foreach_copy_(list(self.model.parameters()), self.best.weights)

    def _epoch(self, pause: Callable[[Training], None]) -> Tensor:
        """Train one epoch, or the rest of one; its record as a tensor ``[3]``, still on the device."""
        for number, batch in enumerate(self._batches(), start=1):
            if number > self.position:
                self.step(batch, number == self.views.steps)
                self.position = number
                if number < self.views.steps and time.monotonic() - self.paused > PAUSE_SECONDS:
                    pause(self)
                    self.paused = time.monotonic()
        self.position = 0
        return self.record / self.views.steps

    def _batches(self) -> Iterable[Tensor]:
        """The batches of the epoch; of one that was interrupted, the same ones again."""
        if self.position == 0:
            self.record.zero_()
            if self.views.steps > 1:
                self.epoch_began = self.generator.get_state()
            return self.views.batches(self.generator)
        now = self.generator.get_state()
        self.generator.set_state(self.epoch_began)
        batches = self.views.batches(self.generator)
        self.generator.set_state(now)
        return batches

    def _step(self, batch: Tensor, last: bool) -> None:
        """The five steps of the paper."""
        positive, negative = self.views.pair(batch, self.generator)  # 1. sample a negative
        loss, record = contrast(self.model, self.objective, positive, negative)  # 2. to 4. encode, summarise, score
        self.record += record
        if self.best is not None and last:  # before the update: these are the weights that produced the loss
            self.best.offer(self.record[0] / self.views.steps)
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()  # 5. update by gradient descent

    def _read_back(self, records: list[Tensor]) -> None:
        self.history += [Record(*row) for row in torch.stack(records).tolist()]
        if self.best is not None and int(self.best.waited) >= self.best.patience:
            self.finished = True
            del self.history[int(self.best.epoch) + self.best.patience + 1 :]
        self.finished |= len(self.history) >= self.epochs
        if self.history[-1].loss != self.history[-1].loss:
            raise InputError(
                f"training, epoch {len(self.history)}", "a finite loss", "NaN", "Lower the learning rate (lr)."
            )

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Everything that decides what comes next: tensors, and plain values."""
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        for row, parameter in enumerate(self.model.parameters()):
            tensors |= {f"adam.{row}.{key}": value for key, value in self.optimiser.state[parameter].items()}
        if self.best is not None:
            tensors |= {f"best.{row}": value for row, value in enumerate(self.best.weights)}
            tensors |= {f"best.{key}": getattr(self.best, key) for key in ("loss", "offers", "epoch", "waited")}
        tensors |= {"generator": self.generator.get_state(), "epoch_began": self.epoch_began, "record": self.record}
        history = {field.name: [getattr(record, field.name) for record in self.history] for field in fields(Record)}
        values = {"history": history, "position": self.position, "seconds": self.seconds, "finished": self.finished}
        return tensors, values

    def restore(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Go on from a `state`, bit for bit."""
        part = _unprefixed(tensors, "model.")
        self.model.load_state_dict(part)
        saved = self.optimiser.state_dict()
        names = ("step", "exp_avg", "exp_avg_sq")
        saved["state"] = {
            row: {name: tensors[f"adam.{row}.{name}"] for name in names}
            for row in range(len(list(self.model.parameters())))
        }
        self.optimiser.load_state_dict(saved)
        if self.best is not None:
            for row, kept in enumerate(self.best.weights):
                kept.copy_(tensors[f"best.{row}"])
            for key in ("loss", "offers", "epoch", "waited"):
                getattr(self.best, key).copy_(tensors[f"best.{key}"])
        self.generator.set_state(tensors["generator"].cpu())
        self.epoch_began, self.position = tensors["epoch_began"].cpu(), values["position"]
        self.record.copy_(tensors["record"])
        columns = [values["history"][field.name] for field in fields(Record)]
        self.history = [Record(*row) for row in zip(*columns, strict=True)]
        self.seconds, self.finished = values["seconds"], values["finished"]


@contextmanager
def tensor_cores() -> Iterator[None]:
    """Products of float32 matrices at a GPU's tf32 precision, ten bits of mantissa; training does not notice."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def _unprefixed(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
