"""The names of what vectors are made of; `infomax.training.recipe` makes them."""

from __future__ import annotations

from typing import Any

from infomax.errors import InputError, shorten

PARTS = ("encoder", "own", "pooled", "positions")
PAPER, RECIPE = "paper", "recipe"
POOLED = "pooled "
"""What the name of a pooled part begins with that has a half-life, as "pooled 60d"."""
CHOICES = f"{RECIPE}, {PAPER}, or some of {','.join(PARTS)}"


def check_vectors(text: Any) -> str:
    """What vectors are to be made of: "recipe", "paper", or names of parts with commas, in the order of `PARTS`."""
    named = [word.strip() for word in text.split(",")] if isinstance(text, str) else []
    if named in ([RECIPE], [PAPER]):
        return named[0]
    if not named or set(named) - set(PARTS):
        raise InputError(
            "vectors", CHOICES, shorten(next((word for word in named if word not in PARTS), text))
        )
    return ",".join(name for name in PARTS if name in named)
