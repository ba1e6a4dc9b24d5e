"""How a text table is written, where its extension does not tell: delimiter, header, encoding."""

from __future__ import annotations

import codecs
from dataclasses import dataclass

from infomax.errors import InputError, shorten

DELIMITER_NAMES = {
    "comma": ",",
    "tab": "\t",
    "\\t": "\t",
    "semicolon": ";",
    "bar": "|",
    "space": " ",
}
"""Delimiters by names that can be typed in a shell."""


@dataclass(frozen=True)
class TextFormat:
    """How text tables are written.

    Attributes:
        delimiter: what separates cells, one character. "": as the extension says.
        has_header: whether the first line names the columns; else they are column1, column2, ...
        encoding: the encoding. "": UTF-8.
    """

    delimiter: str = ""
    has_header: bool = True
    encoding: str = ""

    @classmethod
    def of(
        cls, delimiter: str | None = None, header: bool | None = None, encoding: str | None = None
    ) -> TextFormat:
        """The format that a person chose; refused where there is no such delimiter or encoding."""
        chosen = DELIMITER_NAMES.get(delimiter or "", delimiter or "")
        if len(chosen) > 1 or chosen in ('"', "\n", "\r"):
            expected = (
                f"one character, or {', '.join(list(DELIMITER_NAMES)[:2])}, semicolon, bar, space"
            )
            remedy = "Replace a longer one first: sed 's/::/|/g' ratings.dat > ratings.csv."
            raise InputError("delimiter", expected, shorten(chosen), remedy)
        try:
            known_encoding = codecs.lookup(encoding).name if encoding else ""
        except LookupError:
            expected = "an encoding that Python knows, such as latin-1 or utf-16"
            raise InputError("encoding", expected, shorten(encoding or "")) from None
        return cls(chosen, header is not False, "" if known_encoding == "utf-8" else known_encoding)

    @property
    def takes_any_extension(self) -> bool:
        """Whether files of any extension are text tables: somebody said how they are written."""
        return self != AS_THE_EXTENSION_SAYS


AS_THE_EXTENSION_SAYS = TextFormat()
