"""The backfill of one view: its plan, and the sums since the last step was written.

rows         a table whose rows contribute independently (`views.maintain`, the driving table)
parts        any other sum of parts (`views.fill_parts`)
as a whole   in one step: a view that is no sum of parts, or so small that no progress would be
             saved before the end
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from belvedere.catalog.model import View
from belvedere.kv.batch import Write
from belvedere.txn.border import Reader
from belvedere.views.additions import Nothing, Recorder, state_rows
from belvedere.views.fill_parts import Phase, phases_of
from belvedere.views.fill_place import listed_key
from belvedere.views.maintain import Maintainer
from belvedere.views.quick import Remembered
from belvedere.views.state_update import StateUpdate
from belvedere.views.stream import Addition
from belvedere.views.summing import Sums

WHOLE = "as a whole"

Adder = Callable[[Sequence[Any]], None]


class Way(NamedTuple):
    """How a view is backfilled. `phases` is empty for the rows of `table`, and for one step."""

    name: str
    table: int | None
    phases: tuple[Phase, ...] = ()

    @property
    def steps(self) -> int:
        """How many phases there are."""
        return max(1, len(self.phases))

    @property
    def lists(self) -> bool:
        return any(phase.filled is not None for phase in self.phases)


def way_of(maintainer: Maintainer, *, small: bool) -> Way:
    """Choose the backfill plan. `small`: parts that take longer than one step are not used."""
    if maintainer.table is not None:
        return Way(f"rows of {maintainer.table}", maintainer.table)
    parts = maintainer.parts()
    if parts is None or (small and any(part.dear for part in parts)):
        return Way(WHOLE, None)
    phases = tuple(phases_of(parts))
    driver = phases[0].part.driver
    only = len(phases) == 1 and isinstance(driver, int)
    name = "; ".join(phase.part.name for phase in phases)
    return Way(name, driver if only and isinstance(driver, int) else None, phases)


class Fill:
    """Sums the rows walked for one view, until a sink writes them."""

    def __init__(
        self, view: View, maintainer: Maintainer, way: Way, readers: tuple[Reader, Reader]
    ) -> None:
        """`readers` read the tables; the second also reports the progress of its scans."""
        self.view = view
        self.way = way
        self.sums: Sums = {}
        self._keys: dict[bytes, bytes] = {}
        self._maintainer = maintainer
        self._reader, self._watched = readers
        self._partners = Remembered(self._reader.get).__getitem__

    def __len__(self) -> int:
        return len(self.sums) + len(self._keys)

    def together(self, number: int) -> int:
        """How many rows a phase adds at once."""
        return self.way.phases[number].part.together if self.way.phases else 1

    def add(self, number: int, walked: Sequence[Any]) -> None:
        """Add rows of the table, or keys of the key list, that a phase walks."""
        if not self.way.phases:
            self._maintainer.sum_rows(walked, self._partners, self.sums)
            return
        phase = self.way.phases[number]
        rows = phase.part.rows(self._watched if phase.part.scans else self._reader, walked)
        if phase.keys is None:
            self._maintainer.add_rows(rows, self.sums)
        else:
            assert phase.filled is not None
            for key in phase.keys(rows, self._reader):
                name, value = phase.filled.entry(key)
                self._keys[listed_key(self.view.id, phase.into, name)] = value

    def taken(self) -> tuple[list[Addition], list[Write]]:
        """Take the sums since the last call: additions to the view, and entries of key lists."""
        recorder, keys = Recorder(), list(self._keys.items())
        self._maintainer.write_sums(self.sums, recorder)
        self.sums, self._keys = {}, {}
        return recorder.additions, [*keys]

    def whole(self) -> StateUpdate:
        """Everything at once."""
        recorder = Recorder()
        self._maintainer.fill(self._watched, recorder)
        rows = state_rows(Nothing(self._reader.catalog), recorder.additions)
        return StateUpdate(recorder.additions, state_rows=rows, progress={self.view.id: None})
