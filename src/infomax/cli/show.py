"""What a person sees: tables, and progress as a bar on a terminal or as quiet lines in a log."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from infomax.errors import InputWarning, visible
from infomax.progress import Bar, training_position

if TYPE_CHECKING:
    from rich.console import Console

    from infomax.training.loop import Training

LOG_SECONDS = 10.0
"""Seconds between two lines of progress in a log."""


class Screen:
    """One of the two streams.

    Rich is imported when a table or a bar first needs it; `infomax --help` does not.
    """

    def __init__(self, *, stderr: bool = False, console: Console | None = None) -> None:
        self.stderr = stderr
        self.quiet = False
        self._console = console

    @property
    def console(self) -> Console:
        """For tables and bars; markup in ids and paths is not interpreted."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(
                stderr=self.stderr, quiet=self.quiet, highlight=False, markup=False, emoji=False
            )
        return self._console

    def hush(self, quiet: bool) -> None:
        """Stop printing, or start again."""
        self.quiet = quiet
        # The next one is quiet, or is bound to the stream of now.
        self._console = None

    def print(self, line: str) -> None:
        """Print a line; characters that would act on the terminal are shown as escapes."""
        if self.quiet:
            return
        text = "\n".join(map(visible, line.split("\n")))
        stream = sys.stderr if self.stderr else sys.stdout
        print(text, file=stream, flush=True)


class Clock:
    """The time since a command began, or the last of the several runs that it makes."""

    def __init__(self) -> None:
        self.began = time.monotonic()

    def start(self) -> None:
        """Begin again."""
        self.began = time.monotonic()

    def seconds(self) -> float:
        """The seconds since the clock was started."""
        return time.monotonic() - self.began


out, log = Screen(), Screen(stderr=True)
_clock = Clock()


def start_clock() -> None:
    """Begin to measure the time that `wrote` prints."""
    _clock.start()


def seconds() -> float:
    """The seconds since the clock was started."""
    return _clock.seconds()


def stops() -> list[int]:
    """Signals that stop a command, and a training at its next pause."""
    numbers: list[int] = [signal.SIGINT, signal.SIGTERM]
    hangup = getattr(signal, "SIGHUP", None)  # Windows has none
    # ``nohup`` lets a command ignore that its terminal is closed.
    if hangup is not None and signal.getsignal(hangup) is not signal.SIG_IGN:
        numbers.append(hangup)
    return numbers


def hush(quiet: bool) -> None:
    """Stop printing, or start again: of several processes, one prints."""
    for screen in (out, log):
        screen.hush(quiet)


def warning(
    message: Any, category: type[Warning], filename: str, lineno: int, *_: Any, **more: Any
) -> None:
    """Print a warning to the user as one line; where another library warns, say where."""
    location = ""
    if not issubclass(category, InputWarning):
        location = f"{filename}:{lineno}: "
    log.print(f"warning: {location}{visible(str(message))}")


def table(title: str, columns: Collection[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table."""
    from rich.table import Table

    out.console.print(visible(title), style="bold", soft_wrap=True)
    rich_table = Table(show_header=any(columns))
    for name in columns:
        rich_table.add_column(visible(name), overflow="fold")
    for row in rows:
        cells = ["\n".join(map(visible, str(cell).split("\n"))) for cell in row]
        rich_table.add_row(*cells)
    out.console.print(rich_table)


class Steps(Bar):
    """Progress over a number of things: a bar on a terminal, a line now and then in a log.

    Work that can go on where a Ctrl-C or a SIGTERM stops it says in ``resume`` how.
    """

    def __init__(self, title: str, total: int | None, resume: str = "") -> None:
        super().__init__(title, total, log.console)
        self.resume = resume
        self.last_line_time = time.monotonic()

    def __exit__(self, exception_type: type[BaseException] | None, *_: object) -> None:
        super().__exit__(exception_type)
        if self.resume and exception_type in (KeyboardInterrupt, SystemExit):
            log.print(f"infomax: stopped. {self.resume}")

    def update(self, done: int, note: str = "", total: int | None = None) -> None:
        """Show that ``done`` things are done, of ``total`` where that was not known before."""
        super().update(done, note, total)
        is_due = time.monotonic() - self.last_line_time > LOG_SECONDS
        if self.console.is_terminal or not is_due:
            return

        self.last_line_time = time.monotonic()
        line = f"{self.title}: {done}"
        known_total = self.total if total is None else total
        if known_total:
            line += f" of {known_total}"
        if note:
            line += f", {note}"
        log.print(line)


@contextmanager
def training_progress(title: str, resume: str = "", total: int | None = None) -> Iterator[Any]:
    """A callback for `DGI.fit` that shows the epochs, and stops where a signal came.

    A Ctrl-C or a SIGTERM stops at the next pause, so the state that is written is whole, and
    resuming goes on bit for bit. A second Ctrl-C stops at once, and so does the first one after the
    last epoch.

    Args:
        title: what is counted: epochs or steps.
        resume: how to go on, for the message.
        total: how many there are, where that is known.
    """
    received_signal = 0
    has_ended = False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal received_signal
        received_signal = number
        signal.signal(number, signal.SIG_DFL)
        if has_ended:
            message = f"stopped after the training, before its run was written. {resume}"
            raise KeyboardInterrupt(message.rstrip())

    def follow(training: Training) -> None:
        nonlocal has_ended
        done, note, total = training_position(training)
        if training.finished:
            # Positions of a large graph take longer than the training, without another pause.
            note = f"{note}, now positions and vectors"
            total = done
        steps.update(done, note, total)
        if received_signal:
            message = f"stopped after epoch {len(training.history)}. {resume}"
            raise KeyboardInterrupt(message.rstrip())
        has_ended = training.finished

    earlier_handlers = {number: signal.signal(number, stop) for number in stops()}
    try:
        with Steps(title, total) as steps:
            yield follow
    except KeyboardInterrupt as interruption:
        log.print(f"infomax: {interruption}")
        if received_signal not in (0, signal.SIGINT):
            sys.exit(128 + received_signal)
        raise
    finally:
        for number, handler in earlier_handlers.items():
            signal.signal(number, handler)


def health(report: dict[str, Any]) -> None:
    """The health report as a short table."""
    from infomax.training.health import figures

    table("Health", ("", ""), figures(report))


def scores(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """Rows of a results table with one metric, as `evaluation.results.Row.to_dict` gives them."""
    from infomax.evaluation.probes import PROBE_COSTS

    # A column may be empty in all rows: the paper has figures of few data sets.
    columns = {name: cells for name, cells in _score_columns(rows).items() if any(cells)}
    table(title, columns, zip(*columns.values(), strict=True))

    ends_of_range = {PROBE_COSTS[0], PROBE_COSTS[-1]}
    methods_at_end = [row["method"] for row in rows if ends_of_range & {*row.get("costs", ())}]
    if methods_at_end:
        log.print(
            f"The regularisation C of {', '.join(methods_at_end)} is at the end of its range: "
            "the score may be too low."
        )


def _score_columns(rows: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    """The columns of a results table by their headings."""
    from infomax.evaluation.results import score_text

    metric = rows[0]["metric"]
    has_several_splits = any(row.get("splits", 1) > 1 for row in rows)
    score_heading = "accuracy in %" if metric == "accuracy" else metric
    spread_name = "std"
    if has_several_splits:
        # The rows are those of one encoder, so the spread is over splits.
        score_heading += " ± over splits"
        spread_name = "split_std"

    columns: dict[str, list[Any]] = {
        "method": [row["method"] for row in rows],
        score_heading: [score_text(row["mean"], row[spread_name], metric) for row in rows],
    }
    # The means over encoders have no further metrics.
    for name in rows[0].get("beside", ()):
        values = [row.get("beside", {}).get(name) for row in rows]
        columns[name] = ["" if value is None else f"{value:.3f}" for value in values]

    columns["paper"] = [
        score_text(**row["paper"], metric=metric) if row["paper"] else "" for row in rows
    ]
    has_several_runs = any(row["runs"] != 1 for row in rows)
    if has_several_runs and not has_several_splits:
        columns["runs"] = [row["runs"] for row in rows]
    columns["C"] = [_range_text(row.get("costs", ())) for row in rows]
    columns["seconds"] = [f"{row['seconds']:.1f}" for row in rows]
    return columns


def _range_text(costs: Sequence[float]) -> str:
    """``10``, or ``1 to 100``."""
    if not costs:
        return ""
    if min(costs) == max(costs):
        return f"{min(costs):g}"
    return f"{min(costs):g} to {max(costs):g}"


def write_result(path: Path | None, result: dict[str, Any]) -> None:
    """Write a result where --json asks for it."""
    from infomax.io.json import write_json

    if path is not None:
        write_json(path, result)
        wrote(path)


def wrote(path: object) -> None:
    """The last line: what was written, and how long it took."""
    out.print(f"wrote {path} in {seconds():.1f} s")
