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

# Each of these registers its command.
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
)
from infomax.cli.app import app
from infomax.cli.torchrun import is_first_on_host, started
from infomax.errors import InputError, shorten, visible

UsageError: type[Exception] = typer.BadParameter.__mro__[1]
"""What a mistyped command or option raises; typer has no public name for it."""
REMOVED_OPTIONS = {
    "--own": "Vectors have the nodes' own features: --vectors encoder,own.",
    "--smooth": "Vectors are smoothed; --vectors paper gives those that are not.",
    "--variants": (
        "Parts of vectors have rows of their own; some of them alone: --vectors encoder,own."
    ),
    "--fan-out": (
        "Sampled patches are the paper's: infomax reproduce reddit; "
        "on large graphs use --preset batches."
    ),
    "--weighting": "Sampled patches are the paper's: infomax reproduce reddit.",
    "--set": "Each setting has an option, such as --lr or --encoder.",
}
"""Options of earlier versions, and what took their place."""
SIGNS_OF_FULL_MEMORY = (
    "allocate memory",
    "not enough memory",
    "out of memory",
    "failed to map segment",
    "start new thread",
)
"""Words by which libraries and the system say that memory is used up.

Few of them raise a MemoryError.
"""
SECONDS_BEFORE_QUIET_FAILURE = 5.0
"""How long a process that prints nothing waits before it fails.

torchrun ends all processes when one has ended, also the one that prints the message.
"""
SECONDS_BEFORE_SIGNAL_AGAIN = 0.02
"""After how long a signal that a compiled library has dropped is sent again."""
OBJECTS_BEFORE_GARBAGE_SEARCH = 1_000_000
"""New objects after which Python searches for garbage.

After 700, its own number, it mostly searches what imports leave, for 0.3 s.
"""
LONE_SURROGATES = "[\ud800-\udfff]"
"""Bytes of an argument that Python could not decode, and that most libraries cannot write."""
EXIT_CODE_OF_SIGNALS = 128
"""What is added to the number of a signal that ends a process."""


def run() -> None:
    """Run the command line as a program.

    The program ends without freeing its memory bit by bit, which takes 0.2 to 0.5 s with torch.
    """
    # Where a stream was closed, the next file that is opened would take its number, and with it
    # what libraries print there.
    for name in ("stdin", "stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("r+", encoding="utf-8"))  # noqa: SIM115
    try:
        main()
    except SystemExit as end:
        code = 0 if end.code is None else int(end.code)

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            # The stream takes nothing, or was closed because it took nothing.
            code = code or 2
    os._exit(code)


def main() -> None:
    """Run the command line: a user's mistake is one message and exit code 2, never a traceback."""
    gc.set_threshold(OBJECTS_BEFORE_GARBAGE_SEARCH)
    end_on_signals()
    warnings.showwarning = show.warning
    if isinstance(sys.stdout, io.TextIOWrapper):
        # As stderr does: a result is not lost for a character that cannot be shown.
        sys.stdout.reconfigure(errors="backslashreplace")
    show.start_clock()
    show.hush(not is_first_on_host())

    try:
        _refuse_undecoded_arguments(sys.argv[1:])
        # What is returned is an exit code, such as 130 after a Ctrl-C.
        sys.exit(app(sys.argv[1:] or ["--help"], prog_name="infomax", standalone_mode=False))
    except InputError as error:
        message = str(error)
    except UsageError as error:
        message = _usage_message(error)
    except SystemError as error:
        # Compiled code raises one in place of the exception of a signal that came meanwhile.
        interruption = error.__cause__
        if isinstance(interruption, SystemExit):
            sys.exit(interruption.code)
        if isinstance(interruption, KeyboardInterrupt):
            sys.exit(EXIT_CODE_OF_SIGNALS + signal.SIGINT)
        raise
    except (MemoryError, OSError, ImportError, RuntimeError) as error:
        message = _system_message(error)
        if not message:
            raise

    show.log.print(f"infomax: {visible(message)}")
    if started() and show.log.quiet:
        time.sleep(SECONDS_BEFORE_QUIET_FAILURE)
    sys.exit(2)


def _refuse_undecoded_arguments(arguments: list[str]) -> None:
    for argument in arguments:
        if re.search(LONE_SURROGATES, argument):
            remedy = "Rename it; in a locale without UTF-8, set PYTHONUTF8=1."
            raise InputError("command line", "names in UTF-8", shorten(argument), remedy)


def end_on_signals() -> None:
    """Let signals end the process by an exception.

    An exception that is raised in a callback of a compiled library is dropped, and Python reports
    that nobody can catch it: then the signal is sent again.
    """
    for number in show.stops():
        if number != signal.SIGINT:  # Python's own handler raises KeyboardInterrupt
            signal.signal(number, _end)

    def send_again(dropped: Any) -> None:
        exception = dropped.exc_value
        if not isinstance(exception, SystemExit | KeyboardInterrupt):
            sys.__unraisablehook__(dropped)
            return
        number: int = signal.SIGINT
        if isinstance(exception, SystemExit):
            code = exception.code
            if isinstance(code, int) and code > EXIT_CODE_OF_SIGNALS:
                number = code - EXIT_CODE_OF_SIGNALS
        timer = threading.Timer(SECONDS_BEFORE_SIGNAL_AGAIN, _send_to_main_thread, (number,))
        timer.daemon = True
        timer.start()

    sys.unraisablehook = send_again


def _send_to_main_thread(number: int) -> None:
    main_thread = threading.main_thread().ident
    if main_thread is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main_thread, number)
    else:  # Windows
        signal.raise_signal(number)


def _end(number: int, frame: FrameType | None) -> None:
    """End by an exception, so that half-written files are removed on the way out."""
    sys.exit(EXIT_CODE_OF_SIGNALS + number)


def _system_message(error: Exception) -> str:
    """The message about an error of the system.

    It is empty for an error of the program, which needs its traceback.
    """
    reason = str(error).partition("\n")[0] or type(error).__name__
    is_full_memory = any(sign in reason for sign in SIGNS_OF_FULL_MEMORY)
    if isinstance(error, MemoryError) or is_full_memory:
        remedy = "Lower the dimension (--dim), or allow more memory."
        found = f"too little ({reason.rstrip('.')})"
        return str(InputError("memory", "enough for this command", found, remedy))
    if not isinstance(error, OSError):
        return ""
    if error.filename or not error.strerror:
        return reason

    # An error without a file is one of standard output. It is closed, else what it could not take
    # fails again when the interpreter ends.
    with suppress(OSError):
        sys.stdout.close()
    return f"standard output: {error.strerror}"


def _usage_message(error: Any) -> str:
    """The message about a mistyped command or option."""
    command = error.ctx.command_path if error.ctx else "infomax"
    option_name = getattr(error, "option_name", "")
    if option_name in REMOVED_OPTIONS:
        message = f"No such option: {option_name}. {REMOVED_OPTIONS[option_name]}"
    else:
        message = error.format_message()
    if not message.endswith((".", "?")):
        message += "."
    return f"{message} See: {command} --help"
