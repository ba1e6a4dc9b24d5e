"""What a person sees on a terminal while a command works."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from infomax.cli import show


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> io.StringIO:
    """What is drawn on a terminal, each picture of a bar as a line."""
    drawn = io.StringIO()
    console = Console(file=drawn, force_terminal=True, width=120, color_system=None)
    monkeypatch.setattr(show, "log", show.Screen(stderr=True, console=console))
    return drawn


def test_a_bar_appears_when_its_length_is_known(screen: io.StringIO) -> None:
    with show.Steps("pages", None) as steps:
        assert screen.getvalue() == ""
        steps.update(3, "", 10)
    assert "3/10" in screen.getvalue()
    assert "/?" not in screen.getvalue()


def test_the_time_left_is_told_though_the_length_changes(
    screen: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a training that ends when the loss has not fallen for some epochs: ten steps a second, ten are left."""
    now = 0.0
    with show.Steps("epochs", 21) as steps:
        monkeypatch.setattr(steps.bar, "get_time", lambda: now)
        for step in range(1, 50):
            now = step / 10
            steps.update(step, "", step + 20)
        steps.bar.refresh()
    last = re.findall(r"49/69 .*", screen.getvalue())[-1]
    assert re.search("0:00:0[23]", last)


def test_a_bar_within_another(screen: io.StringIO) -> None:
    """As in an update, which reads a graph."""
    with show.Steps("update", 3) as outer:
        with show.Steps("reading", None) as inner:
            inner.update(40, "edges.csv", 100)
            outer.bar.refresh()
        outer.update(2)
    assert "40/100" in screen.getvalue()
    assert "2/3" in screen.getvalue()
