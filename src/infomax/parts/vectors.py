"""The names of the parts of a vector, which the setting ``vectors`` lists.

`infomax.training.recipe` makes the parts. The encoder's is the paper's vector; the others are
infomax's own.
"""

from __future__ import annotations

from typing import Any

from infomax.errors import InputError, shorten

PARTS = ("encoder", "own", "pooled", "positions")
PAPER, RECIPE = "paper", "recipe"
POOLED = "pooled "
"""The beginning of the name of a pooled part that has a half-life, such as "pooled 60d"."""
CHOICES = f"{RECIPE}, {PAPER}, or some of {','.join(PARTS)}"


def check_vectors(text: Any) -> str:
    """Return the setting: "recipe", "paper", or names of parts with commas, in the order of
    `PARTS`.

    Raises InputError for anything else.
    """
    if not isinstance(text, str):
        raise InputError("vectors", CHOICES, shorten(text))
    names = [name.strip() for name in text.split(",")]
    if names in ([RECIPE], [PAPER]):
        return names[0]

    for name in names:
        if name not in PARTS:
            raise InputError("vectors", CHOICES, shorten(name))
    return ",".join(name for name in PARTS if name in names)
