"""The command line: parse, call the library, print."""

from __future__ import annotations

import atexit
import gc
import io
import os
import re
import signal
import sys
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import typer

from infomax.cli import (  # noqa: F401
    analyse,
    cluster,
    compare,
    demo,
    embed,
    evaluate,
    explain,
    graphs,
    map,
    neighbours,
    prepare,
    show,
    train,
    update,
)  # fmt: skip
from infomax.cli.app import app
from infomax.cli.torchrun import first_here, started
from infomax.errors import InputError, shorten, visible

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What a mistyped command or option raises; typer has no public name for it."""


GONE = {
    "--own": "Vectors have the nodes' own features: --vectors encoder,own.",
    "--smooth": "Vectors are smoothed; --vectors paper gives those that are not.",
    "--variants": "Parts of vectors have rows of their own; some of them alone: --vectors encoder,own.",
    "--fan-out": "Sampled patches are the paper's: infomax reproduce reddit; on large graphs use --preset batches.",
    "--weighting": "Sampled patches are the paper's: infomax reproduce reddit.",
    "--set": "Each setting has an option, such as --lr or --encoder.",
}
"""Options of earlier versions, and what took their place."""

OUT_OF_MEMORY = (
    "allocate memory",
    "not enough memory",
    "out of memory",
    "failed to map segment",
    "start new thread",
)
"""Words by which libraries and the system say that memory is used up; few of them raise a MemoryError."""


GRACE = 5.0
"""Seconds for which a process that prints nothing waits before it fails: torchrun ends all when one has ended."""


AGAIN = 0.02
"""Seconds after which a signal that a compiled library has dropped is sent again."""


NEW_OBJECTS = 1_000_000
"""New objects after which Python searches for garbage. At its own 700 it mostly searches what imports leave: 0.3 s."""


def run() -> None:
    """Run the command line as a program, which ends without freeing its memory bit by bit: 0.2 to 0.5 s with torch."""
    for name in ("stdin", "stdout", "stderr"):
        if (
            getattr(sys, name) is None
        ):  # closed: else the next file takes its number, and what libraries print to it
            setattr(sys, name, Path(os.devnull).open("r+", encoding="utf-8"))  # noqa: SIM115
    try:
        main()
    except SystemExit as end:
        code = 0 if end.code is None else int(end.code)
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):  # it takes nothing, or was closed for that
            code = code or 2
    os._exit(code)


def main() -> None:
    """Run the command line: a user's mistake is one message and exit code 2, never a traceback."""
    gc.set_threshold(NEW_OBJECTS)
    end_on_signals()
    warnings.showwarning = show.warning
    if isinstance(
        sys.stdout, io.TextIOWrapper
    ):  # as stderr does: a result is not lost for a sign that cannot be shown
        sys.stdout.reconfigure(errors="backslashreplace")
    show.start_clock()
    show.hush(not first_here())
    try:
        for word in sys.argv[1:]:
            if re.search(
                "[\ud800-\udfff]", word
            ):  # bytes that Python could not decode, nor most libraries write
                remedy = "Rename it; in a locale without UTF-8, set PYTHONUTF8=1."
                raise InputError("command line", "names in UTF-8", shorten(word), remedy)
        # An int is an exit code: 130 after a Ctrl-C.
        sys.exit(app(sys.argv[1:] or ["--help"], prog_name="infomax", standalone_mode=False))
    except InputError as error:
        message = str(error)
    except UsageError as error:
        message = _usage(error)
    except SystemError as error:  # of compiled code in which a signal came
        if not isinstance(stop := error.__cause__, SystemExit | KeyboardInterrupt):
            raise
        sys.exit(stop.code if isinstance(stop, SystemExit) else 128 + signal.SIGINT)
    except (MemoryError, OSError, ImportError, RuntimeError) as error:
        message = _failure(error)
        if not message:
            raise
    show.log.print(f"infomax: {visible(message)}")
    if started() and show.log.quiet:
        time.sleep(GRACE)
    sys.exit(2)


def end_on_signals() -> None:
    """Let signals end the process by an exception, also where one comes in a callback of a compiled library.

    There it is dropped, and Python reports an exception that nobody can catch: then the signal is sent again.
    """
    for number in show.stops():
        if number != signal.SIGINT:  # Python's own handler raises KeyboardInterrupt
            signal.signal(number, _end)

    def send_again(dropped: Any) -> None:
        if not isinstance(dropped.exc_value, SystemExit | KeyboardInterrupt):
            sys.__unraisablehook__(dropped)
            return
        code = dropped.exc_value.code if isinstance(dropped.exc_value, SystemExit) else None
        number = code - 128 if isinstance(code, int) and code > 128 else signal.SIGINT
        send = getattr(
            signal, "pthread_kill", lambda _, number: signal.raise_signal(number)
        )  # Windows has none
        again = threading.Timer(AGAIN, send, (threading.main_thread().ident, number))
        again.daemon = True
        again.start()

    sys.unraisablehook = send_again


def _end(number: int, frame: FrameType | None) -> None:
    """End by an exception, so that half-written files are removed on the way out."""
    sys.exit(128 + number)


def _failure(error: Exception) -> str:
    """What to say about an error of the system; nothing about one of the program, which needs its traceback."""
    reason = str(error).partition("\n")[0] or type(error).__name__
    if isinstance(error, MemoryError) or any(words in reason for words in OUT_OF_MEMORY):
        remedy = "Lower the dimension (--dim), or allow more memory."
        return str(
            InputError(
                "memory", "enough for this command", f"too little ({reason.rstrip('.')})", remedy
            )
        )
    if not isinstance(error, OSError):
        return ""
    if error.filename or not error.strerror:
        return reason
    with suppress(OSError):
        sys.stdout.close()  # else what it could not take fails again when the interpreter ends
    return f"standard output: {error.strerror}"


def _usage(error: Any) -> str:
    command = error.ctx.command_path if error.ctx else "infomax"
    gone = getattr(error, "option_name", "")
    message = f"No such option: {gone}. {GONE[gone]}" if gone in GONE else error.format_message()
    return f"{message}{'' if message.endswith(('.', '?')) else '.'} See: {command} --help"
