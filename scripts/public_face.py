"""Everything public, one line each: names, methods and arguments of Python; commands, arguments and options.

    python scripts/public_face.py --write    # after a change that you mean: writes tests/public_face.txt
    python scripts/public_face.py --check    # exits with 1 where that file lacks a line, or has one too many

The tests fail where a line of the file is no longer true; what is new may wait until a release (make release).
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
FILE = ROOT / "tests" / "public_face.txt"


def python_lines() -> set[str]:
    """The names of `infomax.__all__`, with arguments, public methods, properties and fields."""
    import infomax

    inner = re.search(
        r'"!\^\((.*?)\)\$"', (ROOT / "mkdocs.yml").read_text()
    )  # what the reference leaves out
    left_out = {*dir(Exception), *(inner[1].split("|") if inner else ())}
    found = set()
    for name in infomax.__all__:
        public = getattr(infomax, name)
        found.add(f"python {name}")
        if public is not infomax.Graph:  # graphs are made by its class methods
            found |= _arguments(f"python {name}", public)
        if not inspect.isclass(public):
            continue
        for member in (member for member in dir(public) if member[0] != "_"):
            if member not in left_out:
                found.add(f"python {name}.{member}")
                found |= _arguments(
                    f"python {name}.{member}", inspect.getattr_static(public, member)
                )
        found |= {
            f"python {name}.{field}"
            for field in getattr(public, "__dataclass_fields__", ())
            if field[0] != "_"
        }
    return found


def _arguments(name: str, public: object) -> set[str]:
    function = getattr(public, "__func__", public)
    if not callable(function):
        return set()
    names: list[str] = []
    for one, parameter in inspect.signature(function).parameters.items():
        names.append(one)
        if unpacked := re.fullmatch(r"Unpack\[(\w+)\]", str(parameter.annotation)):
            names += function.__globals__[unpacked[1]].__annotations__
    return {
        f"{name}({one})"
        for one in names
        if one[0] != "_" and one not in ("self", "cls", "args", "kwargs")
    }


def shell_lines() -> set[str]:
    """The commands, their arguments and their options, also those that ``--help`` only names."""
    import typer

    from infomax.cli import app

    found = set()

    def visit(command: object, path: str) -> None:
        found.add(f"shell {path}")
        for option in getattr(command, "params", ()):
            found.update(f"shell {path} {word}" for word in (*option.opts, *option.secondary_opts))
        for name, one in getattr(command, "commands", {}).items():
            if not one.hidden:
                visit(one, f"{path} {name}")

    visit(typer.main.get_command(app), "infomax")
    return found


def main(words: list[str]) -> int:
    """Print all lines, write them, or compare them with the file."""
    lines = sorted(python_lines() | shell_lines())
    text = "\n".join(lines) + "\n"
    if words == ["--write"]:
        FILE.write_text(text)
    elif words == ["--check"]:
        differ = set(lines) ^ set(FILE.read_text().splitlines())
        print(*sorted(differ), sep="\n")
        return bool(differ)
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
