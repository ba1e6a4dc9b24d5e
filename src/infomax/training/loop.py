"""The loop that trains a method in every regime: steps, early stopping, history and resuming."""

from __future__ import annotations

import math
import time
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor

from infomax import memory
from infomax.errors import InputError, whole
from infomax.kernels import Adam, Backend, initialisation
from infomax.kernels.host import threads
from infomax.kernels.ranks import ALONE, Ranks
from infomax.kernels.replay import Replay
from infomax.parts.methods import Method, Model, found
from infomax.training.schedule import Schedule
from infomax.views import Views

STRIDE = 32
"""Epochs between two reads of the history from a GPU."""
PAUSE_SECONDS = 1.0
"""Seconds that an epoch of many steps runs between pauses for progress, checkpoints and interrupts."""


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
        self.buffers = (
            tuple if patience is None else buffers
        )  # asked anew, since a part may replace its buffers
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


class Training:
    """The state of one training: parts, optimiser, history and position.

    The loop queues steps without waiting for a GPU; with ``replayable`` parts the GPU replays a recorded step. The
    history is read back every `stride` epochs; epochs after the stop are discarded, so the result does not depend on
    the stride. The views should have the same ``backend``.
    """

    def __init__(
        self,
        model: Model,
        views: Views,
        method: Method,
        *,
        schedule: Schedule,
        epochs: int,
        patience: int | None = None,
        generator: torch.Generator,
        replayable: bool = False,
        ranks: Ranks = ALONE,
        backend: Backend | None = None,
    ) -> None:
        self.model, self.views, self.method, self.generator = model, views, method, generator
        self.schedule, self.epochs, self.patience = schedule, epochs, patience
        self.device, self.ranks = generator.device, ranks
        self.backend = backend or Backend(self.device)
        whole("views.steps", views.steps, 1)
        gpu = self.device.type == "cuda"
        self.stride = STRIDE if gpu and views.steps == 1 else 1
        self.weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not self.weights:
            raise InputError(", ".join(dict(model.named_children())), "weights to train", "none")
        # Gradients that are added over the ranks: the encoder's; those of the discriminator are the whole batch's.
        self.shared = sum(parameter.requires_grad for parameter in model.encoder.parameters())
        self.optimiser = Adam(self.weights, schedule.rates(epochs * views.steps), self.backend)
        shape, changing = (STRIDE, len(method.metrics)), partial(_not_trained, model)
        self.ledger = Ledger(self.weights, views.steps, patience, shape, changing, self.backend)
        replayable = replayable and gpu and ranks == ALONE
        if replayable:
            views.pad()
        self.replay = Replay(self._step, generator) if replayable and views.uniform else None
        self.record: Any = _record_of(method.metrics)
        self.history: list[Any] = []
        self.position, self.epoch_began = 0, generator.get_state()
        self.seconds = 0.0
        self.finished = epochs == 0

    def run(self, pause: Callable[[Training], None] = lambda training: None) -> None:
        """Train to the end; ``pause`` is called whenever the history has been read back, and within long epochs."""
        self.began = time.perf_counter()
        gpu = self.device.type == "cuda"
        with torch.enable_grad(), self.backend.reusing(), threads(self.backend.threads):
            while not self.finished:
                stop = min(len(self.history) + self.stride, self.epochs)
                with tensor_cores() if gpu else nullcontext():
                    for _ in range(len(self.history), stop):
                        self._epoch(pause)
                self._read_back()
                self._pause(pause)
        self._end()

    def _end(self) -> None:
        """Take the kept weights; raise InputError where they are not finite."""
        self.replay = None  # it refers to this object
        if self.ledger.kept is not None:
            torch._foreach_copy_(self.optimiser.weights, self.ledger.kept)
        for buffer, kept in zip(self.ledger.buffers(), self.ledger.kept_buffers, strict=True):
            buffer.copy_(kept)
        if not all(bool(weight.isfinite().all()) for weight in self.weights):
            raise InputError(
                "training, its last step",
                "finite weights",
                "others",
                "Lower the learning rate (lr).",
            )

    def _epoch(self, pause: Callable[[Training], None]) -> None:
        """Train one epoch, or the rest of one."""
        number = 0
        for number, batch in enumerate(self._batches(), start=1):
            if number > self.position:
                (self.replay or self._step)(batch, number == self.views.steps)
                self.position = number
                if number < self.views.steps and self._pause_due(number):
                    self._pause(pause)
        if number != self.views.steps:
            raise InputError(
                "views", f"{self.views.steps} batches per epoch, as its steps say", str(number)
            )
        self.position = 0

    def _pause_due(self, number: int) -> bool:
        """Whether to pause after this step of an epoch; ranks do so together, on GPUs after every `STRIDE` steps."""
        due = time.perf_counter() - self.began > PAUSE_SECONDS
        asked = self.ranks == ALONE or self.device.type == "cpu" or number % STRIDE == 0
        return asked and self.ranks.any(due)

    def _pause(self, pause: Callable[[Training], None]) -> None:
        """Call ``pause``; its time does not count as training time."""
        self.seconds += time.perf_counter() - self.began
        pause(self)
        self.began = time.perf_counter()

    def _batches(self) -> Iterable[Tensor]:
        """Return the batches of the epoch; for an interrupted epoch, the same batches again."""
        if self.position == 0:
            if self.views.steps > 1:
                self.epoch_began = self.generator.get_state()
            return self.views.batches(self.generator)
        now = self.generator.get_state()
        self.generator.set_state(self.epoch_began)
        batches = self.views.batches(self.generator)
        self.generator.set_state(now)
        return batches

    def _step(self, batch: Tensor, last: bool) -> None:
        """Do the five steps of the paper, or those of another method."""
        pair = self.views.pair(batch, self.generator)  # 1. sample a negative
        record = self.method.loss(self.model, pair)  # 2. to 4. encode, summarise, score
        if (
            not isinstance(record, Tensor)
            or record.shape != (len(self.method.metrics),)
            or not record.requires_grad
        ):
            expected = f"numbers of shape {[len(self.method.metrics)]} with a gradient"
            raise InputError(f"loss of {type(self.method).__name__}", expected, found(record))
        self.ledger.add_record(record, last)
        # Of one number: for the gradient of several, torch first imports a library of symbols, which takes 0.5 to 3 s.
        mine = torch.autograd.grad(record[0], self.weights, materialize_grads=True)
        gradients = [*self.ranks.sum(mine[: self.shared]), *mine[self.shared :]]
        # The kept weights are those that gave the loss, before the update.
        self.optimiser.step(
            gradients, self.ledger.kept if last else None, self.ledger.waited
        )  # 5. descend
        self.method.after_step(self.model)

    def _read_back(self) -> None:
        before = len(self.history)
        rows, waited = self.ledger.read(before)
        self.history += map(self.record._make, rows)
        if self.patience is not None and waited >= self.patience:
            self.finished = True
            del self.history[self.kept_epoch + self.patience + 1 :]
        self.finished |= len(self.history) >= self.epochs
        losses = enumerate((record.loss for record in self.history[before:]), before + 1)
        lost, loss = next(
            ((epoch, loss) for epoch, loss in losses if not math.isfinite(loss)), (None, 0.0)
        )
        if lost is not None:
            remedy = "Lower the learning rate (lr)."
            if lost * self.views.steps == 1:
                remedy = "The weights are the first ones: see which feature, or which part of your own, is not finite."
            raise InputError(f"training, epoch {lost}", "a finite loss", str(loss), remedy)

    @property
    def kept_epoch(self) -> int:
        """The number of the epoch whose weights are kept, from 0."""
        return len(self.history) - 1 if self.patience is None else int(self.ledger.counts[1])

    def course(self) -> dict[str, Any]:
        """Report the course of the training as JSON values."""
        history = self.history
        kept = self.kept_epoch
        report: dict[str, Any] = {
            "epochs": len(history),
            "kept_epoch": kept + 1 if history else 0,
            "stopped_early": bool(history) and len(history) < self.epochs,
            "steps": len(history) * self.views.steps,
            "lr": self.schedule.peak,
            "seconds": round(self.seconds, 3),
            "peak_memory_bytes": memory.peak_bytes(),
        }
        if self.device.type == "cuda":
            report["peak_gpu_memory_bytes"] = torch.cuda.max_memory_allocated(self.device)
        if history:
            report |= history[kept]._asdict()
            if (guessing := self.method.guessing_loss(self.device)) is not None:
                report["guessing_loss"] = guessing
            columns = zip(*history, strict=True)
            report["curve"] = {
                name: [round(value, 6) for value in column]
                for name, column in zip(self.method.metrics, columns, strict=True)
            }
        return report

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all that the rest of the training depends on: tensors, and JSON values."""
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= self._tensors() | {
            "generator": self.generator.get_state(),
            "epoch_began": self.epoch_began,
        }
        tensors |= {
            f"torch.{name}": value for name, value in initialisation.states(self.device).items()
        }
        history = {
            name: [getattr(record, name) for record in self.history] for name in self.method.metrics
        }
        values = {
            "history": history,
            "position": self.position,
            "seconds": self.seconds,
            "finished": self.finished,
        }
        return tensors, values

    def restore(self, tensors: dict[str, Tensor], values: dict[str, Any]) -> None:
        """Continue from a `state`, bit for bit."""
        weights = {
            name.removeprefix("model."): one
            for name, one in tensors.items()
            if name.startswith("model.")
        }
        self.model.load_state_dict(weights)
        for name, value in self._tensors().items():
            value.copy_(tensors[name])
        self.generator.set_state(tensors["generator"].cpu())
        drawn = {
            name.removeprefix("torch."): one
            for name, one in tensors.items()
            if name.startswith("torch.")
        }
        initialisation.restore(drawn, self.device)
        self.epoch_began, self.position = tensors["epoch_began"].cpu(), values["position"]
        columns = [values["history"][name] for name in self.method.metrics]
        self.history = [self.record(*row) for row in zip(*columns, strict=True)]
        self.seconds, self.finished = values["seconds"], values["finished"]

    def _tensors(self) -> dict[str, Tensor]:
        """The tensors of the optimiser and the ledger."""
        adam, ledger = self.optimiser, self.ledger
        lists = {"adam.mean": adam.means, "adam.variance": adam.variances}
        lists |= {"ledger.kept": ledger.kept or [], "ledger.buffer": ledger.kept_buffers}
        rows = {
            f"{name}.{row}": value
            for name, values in lists.items()
            for row, value in enumerate(values)
        }
        ledger_tensors = {
            f"ledger.{name}": getattr(ledger, name) for name in ("sums", "lowest", "counts")
        }
        return rows | ledger_tensors | {"adam.count": adam.count}


def _record_of(metrics: Sequence[str]) -> Any:
    """The class of a record, which has a metric of a method by its name."""
    return namedtuple("Means", metrics)


def _not_trained(model: Model) -> list[Tensor]:
    """Numbers of a model that change without the optimiser: running means, weights that a method sets after a step."""
    return [
        *model.buffers(),
        *(weight for weight in model.parameters() if not weight.requires_grad),
    ]


def run_together(trainings: Sequence[Training]) -> None:
    """Train several models on the same views; a GPU does a step of all of them at once. Each ends as it would alone."""
    first = trainings[0]
    shared = all(
        training.replay is not None and training.views is first.views for training in trainings
    )
    if not shared or first.stride == 1 or first.finished:
        for training in trainings:
            training.run()
        return
    alive, began = list(trainings), time.perf_counter()
    with torch.enable_grad(), tensor_cores():
        while alive:
            step, count = _side_by_side(alive), len(alive)
            while (
                alive and 2 * len(alive) >= count
            ):  # fewer than half of them left: record these anew
                for _ in range(min(STRIDE, first.epochs - len(alive[0].history))):
                    for batch in first.views.batches(first.generator):
                        step(batch, True)
                for training in alive:
                    training._read_back()
                alive = [training for training in alive if not training.finished]
    for training in trainings:
        training.seconds = (time.perf_counter() - began) / len(trainings)
        training._end()


def _side_by_side(trainings: Sequence[Training]) -> Replay:
    """A step of several trainings, each on a stream of its own, recorded as one."""
    streams = [torch.cuda.Stream(training.device) for training in trainings]

    def step(batch: Tensor, last: bool) -> None:
        here = torch.cuda.current_stream(trainings[0].device)
        for training, stream in zip(trainings, streams, strict=True):
            stream.wait_stream(here)
            with torch.cuda.stream(stream):
                training._step(batch, last)
        for stream in streams:
            here.wait_stream(stream)

    return Replay(step, *(training.generator for training in trainings))


@contextmanager
def tensor_cores() -> Iterator[None]:
    """Multiply float32 matrices on a GPU in tf32 precision, ten bits of mantissa."""
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
