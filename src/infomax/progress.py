"""The one type of callback by which long work reports its progress."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """A callback for work in steps."""

    def __call__(self, done: int, note: str = "", total: int | None = None) -> None:
        """Called when ``done`` steps are done, of ``total`` if that is known; ``note`` says what they are."""


def silent(done: int, note: str = "", total: int | None = None) -> None:
    """Show no progress."""
