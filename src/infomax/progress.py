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
        """Called when ``done`` steps are done, of ``total`` if that is known; ``note`` says what they are."""


def silent(done: int, note: str = "", total: int | None = None) -> None:
    """Show no progress."""


def followed(
    things: Iterable[T], progress: Progress, note: str, total: int, every: int = 1000
) -> Iterator[T]:
    """Iterate over things; ``progress`` is told how many are done, once per ``every`` things."""
    for done, thing in enumerate(things):
        if not done % every:
            progress(done, note, total)
        yield thing


def part(progress: Progress, first: int, length: int, name: str, whole: int) -> Progress:
    """The progress of a part of the work, such as a row of a table: it is ``length`` of ``whole`` steps."""

    def within(done: int, note: str = "", total: int | None = None) -> None:
        progress(first + length * done // (total or 1), name, whole)

    within(0)
    return within


class Bar:
    """A bar on a terminal or in a notebook, from when its length is known; it leaves nothing behind on a terminal.

    In a log, where it cannot be drawn again, nothing is drawn.
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
        self.picture: Any = None  # of a notebook
        self.drawn = -math.inf

    def __enter__(self) -> Self:
        self._draw(self.total)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.console.is_jupyter:
            self.drawn = -math.inf
            self._draw(self.bar.tasks[0].total)
        elif self.console.is_terminal:  # a bar that never started would end in an empty line
            self.bar.stop()

    def at(self, done: int, note: str = "", total: int | None = None) -> None:
        """Show that ``done`` things are done; a ``total`` that was not known before may be given here."""
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
        """Draw one output that is replaced now and then; rich's own way needs another package, ipywidgets."""
        from IPython.display import display

        if time.monotonic() - self.drawn < REDRAW_SECONDS:
            return
        self.drawn = time.monotonic()
        table = self.bar.make_tasks_table(self.bar.tasks)
        if self.picture is None:
            self.picture = display(table, display_id=True)
        else:
            self.picture.update(table)


def position(training: Any) -> tuple[int, str, int]:
    """How far a `Training` is: epochs done, a note with its loss, and the epochs it takes if the loss falls no more."""
    notes = [f"loss {training.history[-1].loss:.4f}"] if training.history else []
    if training.position:
        notes.append(f"step {training.position:,} of {training.views.steps:,}")
    total = training.epochs
    if training.patience is not None:
        total = min(total, training.kept_epoch + training.patience + 1)
    return len(training.history), ", ".join(notes), total


@contextmanager
def following(progress: bool | Callable[[Any], None]) -> Iterator[Callable[[Any], None]]:
    """The callback of a training: yours, a bar on the terminal or in the notebook for True, or none for False."""
    if callable(progress):
        yield progress
    elif progress:
        from rich.console import Console

        with Bar("epochs", None, Console(stderr=True)) as bar:

            def follow(training: Any) -> None:
                done, note, total = position(training)
                bar.at(done, note, done if training.finished else total)

            yield follow
    else:
        yield lambda training: None
