"""What a person sees: tables, and progress as a bar on a terminal or as quiet lines in a log."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

from infomax.errors import InputWarning, visible
from infomax.progress import Bar, position

if TYPE_CHECKING:
    from rich.console import Console

    from infomax.training.loop import Training

LOG_SECONDS = 10.0


class Screen:
    """One of the two streams. Rich is imported when a table or a bar first needs it: `infomax --help` does not."""

    def __init__(self, *, stderr: bool = False) -> None:
        self.stderr, self.quiet = stderr, False

    @cached_property
    def console(self) -> Console:
        """For tables and bars; markup in ids and paths is not interpreted."""
        from rich.console import Console

        return Console(
            stderr=self.stderr, quiet=self.quiet, highlight=False, markup=False, emoji=False
        )

    def print(self, line: str) -> None:
        """Print a line; characters that would act on the terminal are shown as escapes."""
        if self.quiet:
            return
        print(
            "\n".join(map(visible, line.split("\n"))),
            file=sys.stderr if self.stderr else sys.stdout,
            flush=True,
        )


out, log = Screen(), Screen(stderr=True)
_began = [time.monotonic()]


def stops() -> list[int]:
    """Signals that stop a command, and a training at its next pause; ``nohup`` has a closed terminal ignored."""
    hangup = getattr(signal, "SIGHUP", signal.SIGTERM)  # Windows has none
    ignored = signal.getsignal(hangup) is signal.SIG_IGN
    return [
        signal.SIGINT,
        signal.SIGTERM,
        *([] if ignored or hangup is signal.SIGTERM else [hangup]),
    ]


def start_clock() -> None:
    """Begin to measure the time that `wrote` tells: when a command begins, and each of several runs of one."""
    _began[0] = time.monotonic()


def seconds() -> float:
    """The time since the clock was started."""
    return time.monotonic() - _began[0]


def hush(quiet: bool) -> None:
    """Stop printing, or start again: of several processes, one speaks."""
    for screen in (out, log):
        screen.quiet = quiet
        screen.__dict__.pop("console", None)


def warning(
    message: Any, category: type[Warning], filename: str, lineno: int, *_: Any, **more: Any
) -> None:
    """Print a warning to the user as one line; where another library warns, say where."""
    where = "" if issubclass(category, InputWarning) else f"{filename}:{lineno}: "
    log.print(f"warning: {where}{visible(str(message))}")


def table(title: str, columns: Collection[str], rows: Iterable[Iterable[object]]) -> None:
    """Print a table."""
    from rich.table import Table

    out.console.print(visible(title), style="bold", soft_wrap=True)
    sheet = Table(show_header=any(columns))
    for name in columns:
        sheet.add_column(visible(name), overflow="fold")
    for row in rows:
        sheet.add_row(*("\n".join(map(visible, str(cell).split("\n"))) for cell in row))
    out.console.print(sheet)


class Steps(Bar):
    """Progress over a number of things: a bar on a terminal, a line now and then in a log.

    Work that can go on where a Ctrl-C or a SIGTERM stops it says in ``resume`` how.
    """

    def __init__(self, title: str, total: int | None, resume: str = "") -> None:
        super().__init__(title, total, log.console)
        self.resume = resume
        self.logged = time.monotonic()

    def __exit__(self, node_type: type[BaseException] | None, *_: object) -> None:
        super().__exit__(node_type)
        if self.resume and node_type in (KeyboardInterrupt, SystemExit):
            log.print(f"infomax: stopped. {self.resume}")

    def at(self, done: int, note: str = "", total: int | None = None) -> None:
        """Show that ``done`` things are done; a ``total`` that was not known before may be given here."""
        super().at(done, note, total)
        if not self.console.is_terminal and time.monotonic() - self.logged > LOG_SECONDS:
            self.logged = time.monotonic()
            total = self.total if total is None else total
            log.print(
                f"{self.title}: {done}"
                + (f" of {total}" if total else "")
                + (f", {note}" if note else "")
            )


@contextmanager
def training_progress(title: str, resume: str = "", total: int | None = None) -> Iterator[Any]:
    """A callback for `DGI.fit` that shows the epochs; a Ctrl-C or a SIGTERM stops at the next pause.

    So the state that is written is whole, and resuming goes on bit for bit; a second Ctrl-C stops at once, and so does
    the first one after the last epoch.
    """
    stopped, ended = 0, False

    def stop(number: int, frame: FrameType | None) -> None:
        nonlocal stopped
        stopped = number
        signal.signal(number, signal.SIG_DFL)
        if ended:
            raise KeyboardInterrupt(
                f"stopped after the training, before its run was written. {resume}".rstrip()
            )

    def follow(training: Training) -> None:
        nonlocal ended
        done, note, total = position(training)
        if (
            training.finished
        ):  # positions of a large graph take longer than the training, without another pause
            note, total = f"{note}, now positions and vectors", done
        steps.at(done, note, total)
        if stopped:
            raise KeyboardInterrupt(
                f"stopped after epoch {len(training.history)}. {resume}".rstrip()
            )
        ended = training.finished

    before = {number: signal.signal(number, stop) for number in stops()}
    try:
        with Steps(title, total) as steps:
            yield follow
    except KeyboardInterrupt as interruption:
        log.print(f"infomax: {interruption}")
        if stopped not in (0, signal.SIGINT):
            sys.exit(128 + stopped)
        raise
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def health(report: dict[str, Any]) -> None:
    """The health report as a short table."""
    from infomax.training.health import figures

    table("Health", ("", ""), figures(report))


def scores(title: str, rows: Sequence[dict[str, Any]]) -> None:
    """Rows of a results table with one metric, as `evaluation.results.Row.to_dict` gives them."""
    from infomax.evaluation.probes import COSTS
    from infomax.evaluation.results import score_text

    metric = rows[0]["metric"]
    several = any(row.get("splits", 1) > 1 for row in rows)  # of one encoder
    heading = ("accuracy in %" if metric == "accuracy" else metric) + (
        " ± over splits" if several else ""
    )
    columns = {
        "method": [row["method"] for row in rows],
        heading: [
            score_text(row["mean"], row["split_std" if several else "std"], row["metric"])
            for row in rows
        ],
        **{
            name: [
                f"{row['beside'][name]:.3f}" if name in row.get("beside", {}) else ""
                for row in rows
            ]
            for name in rows[0].get("beside", ())  # the means over encoders have none
        },
        "paper": [
            score_text(**row["paper"], metric=row["metric"]) if row["paper"] else "" for row in rows
        ],
        "runs": []
        if several or all(row["runs"] == 1 for row in rows)
        else [row["runs"] for row in rows],
        "C": [_range(row.get("costs", ())) for row in rows],
        "seconds": [f"{row['seconds']:.1f}" for row in rows],
    }
    filled = {
        name: cells for name, cells in columns.items() if any(cells)
    }  # the paper has not every row
    table(title, filled, zip(*filled.values(), strict=True))
    edges = [row["method"] for row in rows if {COSTS[0], COSTS[-1]} & set(row.get("costs", ()))]
    if edges:
        log.print(
            f"The regularisation C of {', '.join(edges)} is at the end of its range: the score may be too low."
        )


def _range(costs: Sequence[float]) -> str:
    """``10``, or ``1 to 100``."""
    return (
        " to ".join(f"{cost:g}" for cost in dict.fromkeys((min(costs), max(costs))))
        if costs
        else ""
    )


def write_result(path: Path | None, result: dict[str, Any]) -> None:
    """Write a result where --json asks for it."""
    from infomax.io.json import write_json

    if path is not None:
        write_json(path, result)
        wrote(path)


def wrote(path: object) -> None:
    """The last line: what was written, and how long it took."""
    out.print(f"wrote {path} in {seconds():.1f} s")
