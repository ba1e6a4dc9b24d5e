"""The door for the shell: parse, call the library, print."""

from __future__ import annotations

import os
import sys

from infomax.cli import demo, embed, evaluate, graphs, reproduce, train  # noqa: F401  (each adds its commands)
from infomax.cli.app import app
from infomax.errors import InputError


def main() -> None:
    """Run the command line: a user's mistake is one message and exit code 2, never a traceback."""
    try:
        app()
    except InputError as error:
        print(f"infomax: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt as stop:
        print(f"infomax: interrupted. {stop}".rstrip(), file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # the reader of our output has left: nothing more to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
