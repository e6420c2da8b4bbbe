"""Backfills on a row-atomic store.

The catalog change that creates an index or view is committed, and its barrier passed: from then on
every commit maintains it, and a snapshot holds all earlier commits. The state at the snapshot is
written as of the snapshot, below all later writes; no statement reads it before it is ready. Sums
are written as folds, which include what was added up to the snapshot.

A resumable view is backfilled in steps, which another node can continue:

    1  what writers have added since the view is in the catalog is reset to zero as of a snapshot s:
       sums of zero, as folds at s. What they add later stays
    2  one maintenance batch writes s as the view's watermark, which retains the log and the
       versions of rows from s on, and the initial progress
    3  the tables are walked as of s (`views.backfill.backfill_plan`). After some rows the sums are
    added to the
       view, with the progress, by a maintenance batch: a record of the log, written once, and only
       while this node is the builder (`views.state.builder_node`)
    4  the view becomes ready; the watermark of an immediate view is deleted

A backfill that cannot be resumed (its plan has changed) begins at 1 again: the zeros of the later
snapshot absorb what the earlier one had added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from belvedere import failpoints
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index, Maintenance, View
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec import accumulator, keyspace
from belvedere.txn.contracts import Reader
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.txn.row_atomic.cells import data_cells
from belvedere.txn.row_atomic.cells.layout import RowWrite
from belvedere.txn.row_atomic.commit_protocol import RowCommit
from belvedere.txn.row_atomic.reader import single_cell_write
from belvedere.txn.transaction.transaction import Transaction
from belvedere.views.backfill.backfill_plan import (
    IN_ONE_STEP,
    PlannedBackfill,
    ViewBackfill,
    plan_python_backfill,
)
from belvedere.views.backfill.backfill_views import (
    BackfillRunner,
    BuildControl,
    NextStep,
    ProgressReader,
)
from belvedere.views.backfill.contracts import HostDatabase
from belvedere.views.backfill.external_cells import ExternalCellBackfill
from belvedere.views.deferred.driver import DeferredMaintenance
from belvedere.views.indexes.entries import CompileExpression, IndexParticipant
from belvedere.views.registry.view_registry import ViewRegistry
from belvedere.views.state.additions import EmptyReader
from belvedere.views.state.backfill_progress import BackfillProgress, read_backfill_progress
from belvedere.views.state.build_state import list_unfinished_builds, select_builds_to_resume
from belvedere.views.state.builder_node import (
    is_built_by_other_node,
    require_builder_node,
    take_over_orphaned_builds,
)
from belvedere.views.state.state_update import (
    StateUpdate,
    commit_state_update,
    commit_update_as_additions,
)
from belvedere.views.state.watermarks import build_watermark_write, read_watermark

AsOf = Callable[[int], AbstractContextManager[Reader]]


class RowAtomicBackfill:
    """Backfills by one of the nodes on the store."""

    def __init__(self, commits: RowCommit, host: HostDatabase) -> None:
        self._commits = commits
        self._host = host

    def backfill_index_or_view(
        self, item: Index | View, among: Sequence[View], build: BuildControl
    ) -> Sequence[View]:
        """Backfill an index, or a view by itself. Commits maintain it already, so none has to catch
        up."""
        commits, host = self._commits, self._host
        if isinstance(item, Index):
            backfill_index_at_snapshot(commits, host.begin, item.id, host.compile_expression)
        elif not self._is_resumable_build(item) or not try_backfill_view_in_steps(
            commits, host.begin, host.open_past_reader, host.registry, item, build
        ):
            backfill_view_in_one_step(commits, host.begin, host.registry, item.id, build)
        return ()

    def _is_resumable_build(self, view: View) -> bool:
        left = select_builds_to_resume(
            list_unfinished_builds(self._host.catalog), every=self._host.resume_builds
        )
        return view.id in [one.id for one in left]

    def take_over_orphaned_builds(self) -> Sequence[Index | View]:
        with self._host.begin(at_least=self._host.position) as reader:
            return take_over_orphaned_builds(self._commits, reader.catalog, reader)

    def may_drop_builds(self, ids: Sequence[int]) -> bool:
        """Another node may have taken some over; what is ready of them serves it."""
        with self._host.begin(at_least=self._host.position) as reader:
            return not is_built_by_other_node(reader, ids, self._commits.node.id)

    def erase_backfill_progress(self, ids: Sequence[int]) -> None:
        """Nothing: the commit that drops them has done so (`views.state.builder_node`)."""

    def open_external_backfill(
        self, deferred: DeferredMaintenance, work: Path
    ) -> ExternalCellBackfill:
        return ExternalCellBackfill(self._commits, self._host)


# -- in one step -----------------------------------------------------------------------------------


def backfill_index_at_snapshot(
    commits: RowCommit,
    begin: Callable[[], Transaction],
    index: int,
    compile_expression: CompileExpression,
) -> None:
    """Write the entries of every row of an index's table; 23505 when values are not unique."""
    with begin() as snapshot:
        for writes in _build_index_entry_batches(snapshot, index, compile_expression):
            commits.write_backfill(snapshot.snapshot.batch, writes)
        unique = _require_index(snapshot.catalog, index).unique
    if unique:
        # Transactions that looked for a value before its entry was written have ended after this.
        commits.wait_for_lock_holders()
        with begin() as later:
            for _ in _build_index_entry_batches(later, index, compile_expression):
                pass


def _require_index(catalog: Catalog, id_: int) -> Index:
    index = catalog.get(id_)
    assert isinstance(index, Index)
    return index


def _build_index_entry_batches(
    snapshot: Transaction, id_: int, compile_expression: CompileExpression
) -> Iterator[list[RowWrite]]:
    index = _require_index(snapshot.catalog, id_)
    table = compiled_table(snapshot.catalog, index.table)
    participant = IndexParticipant(snapshot.catalog, index, compile_expression)
    seen: set[bytes] = set()
    for values in snapshot.scan_values(table.start, table.end):
        writes = []
        for value in values:
            entry = participant.build_index_entry(value)
            if entry is None:
                continue
            if index.unique and entry[0] in seen:
                raise participant.duplicate_key_error(entry[1])
            if index.unique:
                seen.add(entry[0])
            writes.append(single_cell_write(*entry))
        yield writes


def backfill_view_in_one_step(
    commits: RowCommit,
    begin: Callable[[], Transaction],
    registry: ViewRegistry,
    id_: int,
    build: BuildControl,
) -> None:
    """Write the state of a view as of a snapshot; of a deferred one, its watermark too."""
    with begin() as snapshot:
        view = snapshot.catalog.get(id_)
        assert isinstance(view, View)
        writer = DerivedRows(EmptyReader(snapshot.catalog))
        registry.get_view_maintainer(snapshot.catalog, view).backfill_state(
            ProgressReader(snapshot, build), writer
        )
        wanted = dict(writer.writes())
        writes = [
            data_cells.set_sum(key, *accumulator.decode(state))
            for key, state in wanted.items()
            if state is not None
        ]
        writes += _build_zero_sum_writes(commits, snapshot, id_, wanted)
        if view.maintenance is Maintenance.DEFERRED:
            writes.append(single_cell_write(*build_watermark_write(view.id, snapshot.position)))
        commits.write_backfill(snapshot.snapshot.batch, writes)


def _build_zero_sum_writes(
    commits: RowCommit, snapshot: Transaction, id_: int, wanted: dict[bytes, bytes | None]
) -> list[RowWrite]:
    """Sums of additions since the view is maintained, of groups that have no rows at all."""
    start, end = keyspace.relation_range(id_)
    found = commits.read_sums(start, end, snapshot.snapshot.batch)
    return [
        data_cells.set_sum(key, payload, (0,) * len(amounts))
        for key, (payload, amounts) in found.items()
        if key not in wanted
    ]


# -- in steps --------------------------------------------------------------------------------------


def try_backfill_view_in_steps(
    commits: RowCommit,
    begin: Callable[[], Transaction],
    as_of: AsOf,
    registry: ViewRegistry,
    view: View,
    build: BuildControl,
) -> bool:
    """Backfill a view, or resume its backfill; False when it has to be done in one step."""
    with begin() as snapshot:
        maintainer = registry.get_view_maintainer(snapshot.catalog, view)
        way = plan_python_backfill(maintainer)
        if way.name == IN_ONE_STEP:
            return False
        place, position = (
            read_backfill_progress(snapshot, view.id),
            read_watermark(snapshot, view.id),
        )
        if place is None or position is None or place.plan_name != way.name:
            place, position = BackfillProgress(way.name), snapshot.position
            _reset_sums_and_start_backfill(commits, snapshot, view, place)
    with as_of(position) as reader:
        fill = ViewBackfill(
            PlannedBackfill(view, maintainer, way), (reader, ProgressReader(reader, build))
        )
        steps = BackfillRunner(commits, reader, build, _LogRecordSink(commits))
        if way.table is None:
            steps.run_view_phases(fill, place.phase, place.after)
        elif place.phase == 0:
            steps.walk_table_for_views([fill], 0, way.table, place.after)
    return True


def _reset_sums_and_start_backfill(
    commits: RowCommit, snapshot: Transaction, view: View, place: BackfillProgress
) -> None:
    at = snapshot.position
    found = commits.read_sums(*keyspace.relation_range(view.id), at)
    zeros = [
        data_cells.set_sum(key, payload, (0,) * len(amounts))
        for key, (payload, amounts) in found.items()
    ]
    commits.write_backfill(at, zeros)

    def build_start_update(newest: Reader) -> StateUpdate:
        require_builder_node(newest, view.id, commits.node.id)
        return StateUpdate((), progress={view.id: place}, watermarks={view.id: at})

    commit_state_update(commits, build_start_update)
    if failpoints.armed:
        failpoints.hit("backfill.chunk")


class _LogRecordSink:
    """Writes one record of the log for each step."""

    def __init__(self, commits: RowCommit) -> None:
        self._commits = commits

    def write_sums_and_progress(self, fills: Sequence[ViewBackfill], following: NextStep) -> None:
        """Add the sums and write the progress. A backfill that has ended keeps its final progress
        until the view is ready."""
        (fill,) = fills
        additions, keys = fill.take_additions_and_key_entries()
        phase, after = following or (fill.plan.phase_count, b"")
        node, id_ = self._commits.node.id, fill.view.id
        progress = {id_: BackfillProgress(fill.plan.name, phase, after)}
        update = StateUpdate(additions, progress=progress, others=keys)

        def build_step_update(newest: Reader) -> StateUpdate:
            require_builder_node(newest, id_, node)
            return update

        commit_update_as_additions(self._commits, build_step_update)
