"""What the columns of a table are, found from their values in one pass over its rows, whatever their order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from infomax.io.encoding.column_statistics import ColumnStatistics, Fault
from infomax.io.encoding.encoding import Column, Encoding
from infomax.io.encoding.kinds import FEATURES
from infomax.io.encoding.moments import too_fine


class Survey:
    """The columns of these names, of the kinds that a person said; the others are found.

    Of ``keys``, columns that are called after other nodes, a number is an id. Where columns may be ``mixed``, a text
    among numbers or dates makes them codes.
    """

    def __init__(
        self,
        names: Sequence[str],
        kinds: Mapping[str, str],
        labels: Sequence[str] = (),
        keys: Collection[str] = (),
        *,
        mixed: bool = False,
    ) -> None:
        self.found = {
            name: ColumnStatistics(name, kinds.get(name, ""), is_key=name in keys, mixed=mixed)
            for name in names
        }
        self.labels = labels

    @property
    def called(self) -> str | None:
        """The column that can serve as the names of nodes, once all columns are known: of short texts that differ."""
        kinds = {name: found.kind or found.guess() for name, found in self.found.items()}
        named = [name for name, kind in kinds.items() if kind == "name"]
        texts = [
            name for name, kind in kinds.items() if kind == "text" and self.found[name].can_name
        ]
        return next(iter(named + texts), None)

    def add(self, table: Any, place: Callable[[int, str], str]) -> None:
        """Look at some rows of a pyarrow table; ``place`` names the place of a row and a column."""
        for name, found in self.found.items():
            found.add(table[name], place)

    def finish(self) -> tuple[Encoding, list[Fault]]:
        """The encoding, and the faults, one per column."""
        kinds, faults, raw = dict[str, str](), [], True
        for name, found in self.found.items():
            found.merge()
            kind = found.kind or found.guess()
            if fault := found.fault(kind):
                faults.append(fault)
                continue
            kinds[name] = kind
            if kind in FEATURES:
                fine = too_fine(found.numbers.low, found.numbers.high)
                raw &= kind in ("number", "numbers", "boolean") and not found.missing and not fine
        columns = []
        for name, kind in kinds.items():
            found = self.found[name]
            learnt, note = found.learn(kind, raw), found.note(kind, self.labels)
            columns.append(
                Column(name, kind, found.rows, found.missing, found.distinct, learnt, note)
            )
        return Encoding(tuple(columns), raw=raw), faults
