"""How long work reports its progress: the callback for work in steps, and the bar of a training."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from rich import progress as rich
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


def followed(things: Iterable[T], progress: Progress, note: str, total: int, every: int = 1000) -> Iterator[T]:
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


def progress_bar(console: Console) -> rich.Progress:
    """A bar with the number of things done, the time and a note, which leaves nothing behind on a terminal."""
    from rich import progress

    return progress.Progress(
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.MofNCompleteColumn(),
        progress.TimeElapsedColumn(),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[note]}", markup=False),
        console=console,
        transient=True,
    )


def advance(bar: rich.Progress, done: int, note: str, total: int | None) -> None:
    """Set the bar of a task; `Progress.update` would forget the speed, and so the time left, with each new total."""
    task = bar.tasks[0]
    task.total = total
    bar.update(task.id, completed=done, note=note)


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

        bar = progress_bar(Console(stderr=True))
        bar.add_task("epochs", total=None, note="")
        # In a log, where a bar cannot be drawn again, nothing is drawn.
        with _in_notebook(bar) if bar.console.is_jupyter else _on_terminal(bar) as redraw:

            def follow(training: Any) -> None:
                done, note, total = position(training)
                advance(bar, done, note, done if training.finished else total)
                redraw()

            yield follow
    else:
        yield lambda training: None


@contextmanager
def _on_terminal(bar: rich.Progress) -> Iterator[Callable[[], None]]:
    """Draw the bar from its first step on, when its length is known."""
    try:
        yield bar.start if bar.console.is_terminal else lambda: None
    finally:
        bar.live.stop()


@contextmanager
def _in_notebook(bar: rich.Progress) -> Iterator[Callable[[], None]]:
    """Draw the bar as one output that is replaced now and then; rich's own way needs another package, ipywidgets."""
    from IPython.display import display

    shown, drawn = list[Any](), -math.inf

    def redraw() -> None:
        nonlocal drawn
        if time.monotonic() - drawn > REDRAW_SECONDS:
            table, drawn = bar.make_tasks_table(bar.tasks), time.monotonic()
            if shown:
                shown[0].update(table)
            else:
                shown.append(display(table, display_id=True))

    yield redraw
    drawn = -math.inf
    redraw()
