"""The backfill of one view: its plan, and the sums since the last step was written.

A plan is one of four kinds:

    rows        a scan of one table whose rows contribute independently: the driving table
                (`views.maintain.maintainer`)
    parts       any other sum of parts (`views.operators.backfill_parts`)
    columns     by DuckDB, as sorted entries (`views.backfill.column_backfill`)
    as a whole  in one step: a view that is not a sum of parts, or so small that no progress would
                be saved before the end
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from belvedere.catalog.model import View
from belvedere.kv.batch import Write
from belvedere.txn.contracts import Reader
from belvedere.views.changefeed.entries import Addition
from belvedere.views.codegen.group_sums import GroupSums
from belvedere.views.codegen.lookup_chain import LookupCache
from belvedere.views.maintain.maintainer import ViewMaintainer
from belvedere.views.operators.backfill_parts import BackfillPhase, plan_backfill_phases
from belvedere.views.state.additions import AdditionRecorder, EmptyReader, build_state_row_writes
from belvedere.views.state.backfill_progress import build_key_list_entry_key
from belvedere.views.state.state_update import StateUpdate

IN_ONE_STEP = "as a whole"
BY_COLUMNS = "by columns"

Adder = Callable[[Sequence[Any]], None]


class BackfillPlan(NamedTuple):
    """How a view is backfilled. `phases` is empty for a scan of `table`, and for one step."""

    name: str
    table: int | None
    phases: tuple[BackfillPhase, ...] = ()

    @property
    def phase_count(self) -> int:
        """The number of phases."""
        return max(1, len(self.phases))

    @property
    def has_key_lists(self) -> bool:
        return any(phase.output_keys is not None for phase in self.phases)


class PlannedBackfill(NamedTuple):
    """A view, what maintains it, and how it is backfilled."""

    view: View
    maintainer: ViewMaintainer
    plan: BackfillPlan


class ResumePoint(NamedTuple):
    """The position of an interrupted backfill's scan, its plan, and the step at which it
    continues."""

    position: int
    plan_name: str
    phase: int
    after: bytes


def plan_python_backfill(maintainer: ViewMaintainer, *, small: bool = False) -> BackfillPlan:
    """The plan of a backfill in Python. `small`: parts that take longer than one step are not
    used."""
    if maintainer.driving_table is not None:
        return BackfillPlan(f"rows of {maintainer.driving_table}", maintainer.driving_table)
    parts = maintainer.list_backfill_parts()
    if parts is None or (small and any(part.costly_in_chunks for part in parts)):
        return BackfillPlan(IN_ONE_STEP, None)
    phases = tuple(plan_backfill_phases(parts))
    driver = phases[0].part.driver
    only = len(phases) == 1 and isinstance(driver, int)
    name = "; ".join(phase.part.name for phase in phases)
    return BackfillPlan(name, driver if only and isinstance(driver, int) else None, phases)


class ViewBackfill:
    """Sums the rows walked for one view, until a sink writes them."""

    def __init__(self, planned: PlannedBackfill, readers: tuple[Reader, Reader]) -> None:
        """`readers` read the tables; the second also reports the progress of its scans."""
        self.view, self._maintainer, self.plan = planned
        self.sums: GroupSums = {}
        self._keys: dict[bytes, bytes] = {}
        self._reader, self._watched = readers
        self._partners = LookupCache(self._reader.get).__getitem__

    def __len__(self) -> int:
        return len(self.sums) + len(self._keys)

    def get_rows_per_step(self, number: int) -> int:
        """How many rows a phase adds at once."""
        return self.plan.phases[number].part.batch_row_count if self.plan.phases else 1

    def sum_walked_rows(self, number: int, walked: Sequence[Any]) -> None:
        """Add rows of the table, or keys of the key list, that a phase walks."""
        if not self.plan.phases:
            self._maintainer.sum_driving_table_rows(walked, self._partners, self.sums)
            return
        phase = self.plan.phases[number]
        rows = phase.part.make_rows(self._watched if phase.part.scans else self._reader, walked)
        if phase.keys is None:
            self._maintainer.sum_output_rows(rows, self.sums)
        else:
            assert phase.output_keys is not None
            for key in phase.keys(rows, self._reader):
                name, value = phase.output_keys.encode_key_entry(key)
                self._keys[build_key_list_entry_key(self.view.id, phase.output_list, name)] = value

    def take_additions_and_key_entries(self) -> tuple[list[Addition], list[Write]]:
        """Take the sums since the last call: additions to the view, and entries of key lists."""
        recorder, keys = AdditionRecorder(), list(self._keys.items())
        self._maintainer.write_sums_as_additions(self.sums, recorder)
        self.sums, self._keys = {}, {}
        return recorder.additions, [*keys]

    def compute_full_state_update(self) -> StateUpdate:
        """Everything at once, with the view's watermark."""
        recorder = AdditionRecorder()
        self._maintainer.backfill_state(self._watched, recorder)
        rows = build_state_row_writes(EmptyReader(self._reader.catalog), recorder.additions)
        marks = {self.view.id: self._reader.position}
        return StateUpdate(recorder.additions, state_rows=rows, watermarks=marks)
