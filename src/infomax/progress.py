"""How long work reports its progress: the callback for work in steps, and the bar that shows it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from rich.console import Console

T = TypeVar("T")
REDRAW_SECONDS = 0.2
"""Seconds between two pictures of a bar in a notebook."""


class Progress(Protocol):
    """A callback for work in steps."""

    def __call__(self, done: int, note: str = "", total: int | None = None) -> None:
        """Called when ``done`` steps of ``total``, if known, are done; ``note`` names them."""


def silent(done: int, note: str = "", total: int | None = None) -> None:
    """Show no progress."""


def followed(
    items: Iterable[T], progress: Progress, note: str, total: int, every: int = 1000
) -> Iterator[T]:
    """Iterate over items, and report how many are done once per ``every`` items."""
    for done, item in enumerate(items):
        if done % every == 0:
            progress(done, note, total)
        yield item


def progress_of_part(
    progress: Progress, first_step: int, steps: int, name: str, all_steps: int
) -> Progress:
    """The callback for a part of some work, such as the scoring of one kind of vectors.

    Args:
        progress: the callback of all the work.
        first_step: the step of all the work at which the part begins.
        steps: the steps of all the work that the part takes.
        name: what the part is; the notes of the part itself are not shown.
        all_steps: the steps of all the work.
    """

    def report(done: int, note: str = "", total: int | None = None) -> None:
        # A part of unknown length shows no progress until the next one begins.
        done_steps = min(steps * done // total, steps) if total else 0
        progress(first_step + done_steps, name, all_steps)

    report(0)
    return report


class Bar:
    """A bar on a terminal or in a notebook, from when its length is known.

    It leaves nothing behind on a terminal. In a log, where it cannot be drawn again, nothing is
    drawn.
    """

    def __init__(self, title: str, total: int | None, console: Console) -> None:
        from rich import progress

        self.title = title
        self.total = total
        self.console = console
        self.bar = progress.Progress(
            progress.TextColumn("{task.description}", markup=False),
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            progress.TimeElapsedColumn(),
            progress.TimeRemainingColumn(),
            progress.TextColumn("{task.fields[note]}", markup=False),
            console=console,
            transient=True,
        )
        self.bar.add_task(title, total=total, note="")
        # In a notebook the bar is an output that is replaced, at most every REDRAW_SECONDS.
        self.notebook_output: Any = None
        self.drawn_at = -math.inf

    def __enter__(self) -> Self:
        self._draw(self.total)
        return self

    def __exit__(self, exception_type: type[BaseException] | None, *_: object) -> None:
        if self.console.is_jupyter:
            self.drawn_at = -math.inf  # the last picture is drawn, however soon
            self._draw(self.bar.tasks[0].total)
        elif self.console.is_terminal:  # a bar that never started would end in an empty line
            self.bar.stop()

    def update(self, done: int, note: str = "", total: int | None = None) -> None:
        """Show that ``done`` steps are done; a ``total`` may become known with any step."""
        task = self.bar.tasks[0]
        # `Progress.update` would forget the speed, and so the time left, with each new total.
        task.total = self.total if total is None else total
        self.bar.update(task.id, completed=done, note=note)
        self._draw(task.total)

    def _draw(self, total: float | None) -> None:
        if self.console.is_jupyter:
            self._draw_in_notebook()
        elif total is not None and self.console.is_terminal:
            self.bar.start()

    def _draw_in_notebook(self) -> None:
        """Replace one output now and then; rich's own way needs another package, ipywidgets."""
        from IPython.display import display

        if time.monotonic() - self.drawn_at < REDRAW_SECONDS:
            return
        self.drawn_at = time.monotonic()
        table = self.bar.make_tasks_table(self.bar.tasks)
        if self.notebook_output is None:
            self.notebook_output = display(table, display_id=True)
        else:
            self.notebook_output.update(table)


def training_position(training: Any) -> tuple[int, str, int]:
    """How far a `Training` is: epochs done, a note, and the epochs at which it ends.

    The note holds the loss and, within an epoch, the step. With a patience a training ends at the
    earliest after that many epochs more, if the loss falls no more.
    """
    notes = []
    if training.history:
        notes.append(f"loss {training.history[-1].loss:.4f}")
    if training.position:
        notes.append(f"step {training.position:,} of {training.views.steps:,}")
    total = training.epochs
    if training.patience is not None:
        total = min(total, training.kept_index + training.patience + 1)
    return len(training.history), ", ".join(notes), total


@contextmanager
def training_callback(progress: bool | Callable[[Any], None]) -> Iterator[Callable[[Any], None]]:
    """The callback of a training: yours, one that shows a bar for True, or none for False."""
    if callable(progress):
        yield progress
    elif progress:
        from rich.console import Console

        with Bar("epochs", None, Console(stderr=True)) as bar:

            def show_position(training: Any) -> None:
                done, note, total = training_position(training)
                bar.update(done, note, done if training.finished else total)

            yield show_position
    else:
        yield lambda training: None
