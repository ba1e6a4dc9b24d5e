"""JSON files: written whole or not at all, and read as one object."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from infomax.errors import InputError
from infomax.io.atomic import write_text

RESTORE = "Restore a copy, or train again."
"""What to do about a damaged file of a run."""


def to_json(values: Any, **layout: Any) -> str:
    """Values as JSON text; numbers and arrays of NumPy and torch become plain numbers and lists."""
    return json.dumps(values, default=_plain, **layout)


def json_hash(values: Any) -> str:
    """SHA-256 of values as JSON text with sorted keys."""
    return hashlib.sha256(to_json(values, sort_keys=True).encode()).hexdigest()


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Write an object to a file, which appears whole or not at all."""
    write_text(path, to_json(values, indent=2) + "\n")


def read_json(path: Path, remedy: str = RESTORE) -> dict[str, Any]:
    """Read a file that holds one JSON object."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise InputError(str(path), "a JSON object", "one nested too deeply", remedy) from None
    except (OSError, ValueError) as error:
        raise InputError(str(path), "a JSON object", str(error), remedy) from None
    if not isinstance(values, dict):
        raise InputError(str(path), "a JSON object", type(values).__name__, remedy)
    return values


def _plain(value: Any) -> Any:
    if not hasattr(value, "tolist"):
        remedy = "Write a function of your own that makes the part, and pass that."
        raise InputError(
            "settings", "numbers and text, which a run folder can hold", repr(value), remedy
        )
    return value.tolist()
