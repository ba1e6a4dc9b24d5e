"""The loop that trains a method in every regime: epochs of steps, history, pauses and resuming.

A step is `infomax.parts.deep_graph_infomax.train_step`. The learning rate of each step comes from a
`Schedule`, and the end from the number of epochs or, with a patience, from early stopping.
`infomax.estimator.assembly` makes a `Training` of a preset, and chooses the equivalent of the
method in closed form where there is one.
"""

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
from infomax.errors import InputError, check_whole_number
from infomax.kernels import Adam, Backend, initialisation
from infomax.kernels.host import torch_threads
from infomax.kernels.ranks import ALONE, Ranks
from infomax.kernels.replay import Replay
from infomax.parts.deep_graph_infomax import train_step
from infomax.parts.methods import Method, Model
from infomax.training.early_stopping import Ledger
from infomax.training.schedule import Schedule
from infomax.views import Views

EPOCHS_PER_READ = 32
"""Epochs between two reads of the history from a GPU: a read waits for all queued steps.

In a long epoch of several processes on GPUs, also the steps between two looks at the clock.
"""
PAUSE_SECONDS = 1.0
"""Seconds within a long epoch between pauses for progress, checkpoints and interrupts."""

Pause = Callable[["Training"], None]
"""A function that is called now and then, to show progress or to write a checkpoint."""


class Training:
    """The state of one training: parts, optimiser, history and position.

    The loop queues steps without waiting for a GPU; with ``replayable`` parts the GPU replays a
    recorded step. The history is read back every `stride` epochs; epochs after the stop are
    discarded, so the result does not depend on the stride.

    Args:
        model: the encoder, and the other parts with weights that the method trains.
        views: draws the pairs; it should have the same ``backend``.
        method: gives the loss of a pair.
        schedule: the learning rate of each step.
        epochs: how many epochs; with patience the most.
        patience: epochs without a lower loss after which training ends; None: all epochs are
        trained.
        generator: for all random draws; its device is that of the training.
        replayable: whether all steps do the same work.
        ranks: the processes that share each step.
        backend: the kernels; None: chosen by the device.
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
        self.model = model
        self.views = views
        self.method = method
        self.schedule = schedule
        self.epochs = epochs
        self.patience = patience
        self.generator = generator
        self.device = generator.device
        self.ranks = ranks
        self.backend = backend or Backend(self.device)
        check_whole_number("views.steps", views.steps, 1)

        self.weights = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if not self.weights:
            raise InputError(", ".join(dict(model.named_children())), "weights to train", "none")
        # The encoder's weights come first. Each rank has the gradients of its own nodes, which are
        # added over the ranks. Those of the discriminator are of the full batch on every rank.
        self.encoder_weight_count = len(
            [weight for weight in model.encoder.parameters() if weight.requires_grad]
        )
        self.optimiser = Adam(self.weights, schedule.rates(epochs * views.steps), self.backend)
        self.ledger = Ledger(
            self.weights,
            views.steps,
            patience,
            (EPOCHS_PER_READ, len(method.metrics)),
            partial(_changing_without_optimiser, model),
            self.backend,
        )

        on_gpu = self.device.type == "cuda"
        self.stride = EPOCHS_PER_READ if on_gpu and views.steps == 1 else 1
        self.replay: Replay | None = None
        if replayable and on_gpu and ranks == ALONE:
            views.pad()
            if views.uniform:
                self.replay = Replay(self.step, generator)

        self.make_record = _record_class(method.metrics)
        self.history: list[Any] = []
        self.position = 0
        """Steps of the current epoch that are done."""
        self.epoch_began = generator.get_state()
        self.seconds = 0.0
        self.finished = epochs == 0

    def run(self, pause: Pause = lambda training: None) -> None:
        """Train to the end.

        ``pause`` is called after each reading of the history, and in long epochs.
        """
        self.resumed_at = time.perf_counter()
        on_gpu = self.device.type == "cuda"
        with torch.enable_grad(), self.backend.reusing(), torch_threads(self.backend.threads):
            while not self.finished:
                stop = min(len(self.history) + self.stride, self.epochs)
                with tensor_cores() if on_gpu else nullcontext():
                    for _ in range(len(self.history), stop):
                        self._train_epoch(pause)
                self.read_history()
                self._pause(pause)
        self.end()

    def step(self, batch: Tensor, is_last: bool) -> None:
        """Do a step; ``is_last`` for the last one of an epoch."""
        descend = partial(self._descend, is_last=is_last)
        train_step(
            self.method, self.model, self.views, batch, self.generator, self.weights, descend
        )

    def _descend(self, record: Tensor, gradients: Sequence[Tensor], *, is_last: bool) -> None:
        """Write down the loss, and change the weights."""
        self.ledger.add_record(record, is_last)
        summed = self.ranks.sum(gradients[: self.encoder_weight_count])
        # The kept weights are those that gave the loss, before the update.
        kept_weights = self.ledger.kept_weights if is_last else None
        all_gradients = [*summed, *gradients[self.encoder_weight_count :]]
        self.optimiser.step(all_gradients, kept_weights, self.ledger.epochs_waited)

    def _train_epoch(self, pause: Pause) -> None:
        """Train one epoch, or the steps that an interrupted one still needs."""
        step = self.replay or self.step
        step_number = 0
        for step_number, batch in enumerate(self._batches(), start=1):
            if step_number <= self.position:
                continue  # done before the interruption
            is_last = step_number == self.views.steps
            step(batch, is_last)
            self.position = step_number
            if not is_last and self._pause_is_due(step_number):
                self._pause(pause)
        if step_number != self.views.steps:
            expected = f"{self.views.steps} batches per epoch, as its steps say"
            raise InputError("views", expected, str(step_number))
        self.position = 0

    def _batches(self) -> Iterable[Tensor]:
        """Return the batches of the epoch; for an interrupted epoch, the same batches again."""
        if self.position == 0:
            if self.views.steps > 1:
                self.epoch_began = self.generator.get_state()
            return self.views.batches(self.generator)

        # Batches are drawn when an epoch begins, so its generator draws the same ones again.
        state = self.generator.get_state()
        self.generator.set_state(self.epoch_began)
        batches = self.views.batches(self.generator)
        self.generator.set_state(state)
        return batches

    def _pause_is_due(self, step_number: int) -> bool:
        """Whether to pause after this step of an epoch.

        Ranks do so together, on GPUs after every `EPOCHS_PER_READ` steps.
        """
        is_due = time.perf_counter() - self.resumed_at > PAUSE_SECONDS
        is_alone = self.ranks == ALONE
        # To ask the other ranks makes a GPU wait for its queued steps, so they are asked rarely.
        may_ask_ranks = self.device.type == "cpu" or step_number % EPOCHS_PER_READ == 0
        return (is_alone or may_ask_ranks) and self.ranks.any(is_due)

    def _pause(self, pause: Pause) -> None:
        """Call ``pause``; its time does not count as training time."""
        self.seconds += time.perf_counter() - self.resumed_at
        pause(self)
        self.resumed_at = time.perf_counter()

    def read_history(self) -> None:
        """Read the records of the epochs since the last reading, and see whether training ends."""
        known_count = len(self.history)
        rows, epochs_waited = self.ledger.read(known_count)
        self.history += map(self.make_record._make, rows)
        if self.ledger.ends_training(epochs_waited):
            self.finished = True
            # Epochs were queued before it was known that training had ended.
            last_index = self.kept_index + (self.patience or 0)
            del self.history[last_index + 1 :]
        if len(self.history) >= self.epochs:
            self.finished = True
        for epoch, record in enumerate(self.history[known_count:], known_count + 1):
            if not math.isfinite(record.loss):
                raise self._not_finite(epoch, record.loss)

    def _not_finite(self, epoch: int, loss: float) -> InputError:
        remedy = "Lower the learning rate (lr)."
        if epoch * self.views.steps == 1:
            remedy = (
                "The weights are the first ones: see which feature, or which part of your own, "
                "is not finite."
            )
        return InputError(f"training, epoch {epoch}", "a finite loss", str(loss), remedy)

    def end(self) -> None:
        """Take the kept weights; raise InputError where they are not finite."""
        # The recorded step refers to this object, which would keep both alive.
        self.replay = None
        self.ledger.put_back(self.optimiser.weights)
        if not all(bool(weight.isfinite().all()) for weight in self.weights):
            remedy = "Lower the learning rate (lr)."
            raise InputError("training, its last step", "finite weights", "others", remedy)

    @property
    def kept_index(self) -> int:
        """Where the epoch whose weights are kept stands in the history."""
        return self.ledger.kept_index(len(self.history))

    def training_report(self) -> dict[str, Any]:
        """Report the course of the training as JSON values.

        ``epochs`` and ``kept_epoch`` count from 1, and are 0 where nothing was trained. The metrics
        of the kept epoch, such as ``loss``, stand by their names; ``curve`` has those of all.
        """
        history = self.history
        report: dict[str, Any] = {
            "epochs": len(history),
            "kept_epoch": self.kept_index + 1 if history else 0,
            "stopped_early": bool(history) and len(history) < self.epochs,
            "steps": len(history) * self.views.steps,
            "lr": self.schedule.peak,
            "seconds": round(self.seconds, 3),
            "peak_memory_bytes": memory.peak_bytes(),
        }
        if self.device.type == "cuda":
            report["peak_gpu_memory_bytes"] = torch.cuda.max_memory_allocated(self.device)
        if not history:
            return report

        # The metrics of the kept epoch, such as loss.
        report |= history[self.kept_index]._asdict()
        guessing_loss = self.method.guessing_loss(self.device)
        if guessing_loss is not None:
            report["guessing_loss"] = guessing_loss
        values_by_metric = zip(*history, strict=True)
        report["curve"] = {
            name: [round(value, 6) for value in values]
            for name, values in zip(self.method.metrics, values_by_metric, strict=True)
        }
        return report

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Return all that the further training depends on: tensors, and JSON values.

        The learning rate needs no entry: the number of steps that Adam has counted decides it.
        """
        torch_states = initialisation.states(self.device)
        tensors = {
            **{f"model.{name}": value for name, value in self.model.state_dict().items()},
            **self._tensors_of_parts(),
            "generator": self.generator.get_state(),
            "epoch_began": self.epoch_began,
            **{f"torch.{name}": value for name, value in torch_states.items()},
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
        self.model.load_state_dict(_with_prefix("model.", tensors))
        for name, value in self._tensors_of_parts().items():
            value.copy_(tensors[name])
        self.generator.set_state(tensors["generator"].cpu())
        initialisation.restore(_with_prefix("torch.", tensors), self.device)

        self.epoch_began = tensors["epoch_began"].cpu()
        self.position = values["position"]
        values_by_metric = [values["history"][name] for name in self.method.metrics]
        self.history = [self.make_record(*epoch) for epoch in zip(*values_by_metric, strict=True)]
        self.seconds = values["seconds"]
        self.finished = values["finished"]

    def _tensors_of_parts(self) -> dict[str, Tensor]:
        """The tensors of the optimiser and the ledger, by name."""
        optimiser, ledger = self.optimiser, self.ledger
        lists = {
            "adam.mean": optimiser.means,
            "adam.variance": optimiser.variances,
            "ledger.kept": ledger.kept_weights or [],
            "ledger.buffer": ledger.kept_buffers,
        }
        tensors = {
            f"{name}.{index}": tensor
            for name, tensors_of_name in lists.items()
            for index, tensor in enumerate(tensors_of_name)
        }
        return tensors | {
            "ledger.sums": ledger.sums,
            "ledger.lowest": ledger.lowest,
            "ledger.counts": ledger.counts,
            "adam.count": optimiser.count,
        }


def _record_class(metrics: Sequence[str]) -> Any:
    """The class of an epoch's record, which has each metric of a method as an attribute."""
    return namedtuple("Means", metrics)


def _with_prefix(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with a prefix, by what follows it."""
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in tensors.items()
        if name.startswith(prefix)
    }


def _changing_without_optimiser(model: Model) -> list[Tensor]:
    """Numbers that change without the optimiser: running means, weights that a method sets."""
    set_by_method = [weight for weight in model.parameters() if not weight.requires_grad]
    return [*model.buffers(), *set_by_method]


def run_together(trainings: Sequence[Training]) -> None:
    """Train several models on the same views; each ends as it would alone.

    A GPU does a step of all of them at once.
    """
    first = trainings[0]
    can_be_recorded = all(
        training.replay is not None and training.views is first.views for training in trainings
    )
    if not can_be_recorded or first.stride == 1 or first.finished:
        for training in trainings:
            training.run()
        return

    unfinished = list(trainings)
    began = time.perf_counter()
    with torch.enable_grad(), tensor_cores():
        while unfinished:
            step = _step_of_all(unfinished)
            recorded_count = len(unfinished)
            # When fewer than half of them are unfinished, their step is recorded anew.
            while unfinished and 2 * len(unfinished) >= recorded_count:
                epochs_left = first.epochs - len(unfinished[0].history)
                for _ in range(min(EPOCHS_PER_READ, epochs_left)):
                    for batch in first.views.batches(first.generator):
                        step(batch, True)
                for training in unfinished:
                    training.read_history()
                unfinished = [training for training in unfinished if not training.finished]
    for training in trainings:
        training.seconds = (time.perf_counter() - began) / len(trainings)
        training.end()


def _step_of_all(trainings: Sequence[Training]) -> Replay:
    """A step of several trainings, each on a stream of its own, recorded as one."""
    streams = [torch.cuda.Stream(training.device) for training in trainings]

    def step(batch: Tensor, is_last: bool) -> None:
        main_stream = torch.cuda.current_stream(trainings[0].device)
        for training, stream in zip(trainings, streams, strict=True):
            stream.wait_stream(main_stream)
            with torch.cuda.stream(stream):
                training.step(batch, is_last)
        for stream in streams:
            main_stream.wait_stream(stream)

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
