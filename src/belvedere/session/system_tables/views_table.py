"""The system tables `belvedere.views` and `belvedere.auxiliary_views`: position, lag, size and cost
of each view that a user made, and of each that exists only to maintain others.

| column | |
|---|---|
| state, maintenance, schedule, maintenance_group | how it is maintained, and in which group |
| position, backlog | what it shows, and how many commits it lacks |
| lag_ms, lag_p50_ms, lag_p99_ms | age of the oldest commit it lacks: now, and at its batches |
| rows, entries, bytes | what it shows, and what is stored of it |
| changes, cost_us | changes applied since the store was opened; time of each. For an immediate
  view measured by maintaining it for the last commits again, without writing |
| last_batch | the engine of its last batch, and why (`views.cost.tier_selector`) |
| auxiliaries | indexes and views that exist for it |
| owner | what maintains the group, when it is not the worker |
| last_verify, error | the last result of VERIFY; the error that stops its maintenance |
| kind | view, or index: of a view, or of a table with options |
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Maintenance, ObjectState, View
from belvedere.catalog.view_options import SCHEDULE_NAMES
from belvedere.errors import Error
from belvedere.execution.python.compile import compile_plan
from belvedere.plan.fields import Field
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import BIGINT, DOUBLE, TEXT, Row
from belvedere.views.maintain.log_window import LogWindow, build_reader_before_changes
from belvedere.views.state import claims
from belvedere.views.state.additions import AdditionRecorder
from belvedere.views.state.watermarks import require_applied_position

if TYPE_CHECKING:
    from belvedere.session.session import Session

MEASURED_CHANGES_MAX = 500
MEASURED_COMMITS = 64
"""The number of commits that are maintained again to measure the cost of a change."""

FIELDS = (
    Field("schema", TEXT),
    Field("name", TEXT),
    Field("state", TEXT),
    Field("maintenance", TEXT),
    Field("schedule", TEXT),
    Field("maintenance_group", BIGINT),
    Field("position", BIGINT),
    Field("backlog", BIGINT),
    Field("lag_ms", DOUBLE),
    Field("lag_p50_ms", DOUBLE),
    Field("lag_p99_ms", DOUBLE),
    Field("rows", BIGINT),
    Field("entries", BIGINT),
    Field("bytes", BIGINT),
    Field("changes", BIGINT),
    Field("cost_us", DOUBLE),
    Field("last_batch", TEXT),
    Field("auxiliaries", TEXT),
    Field("owner", TEXT),
    Field("last_verify", TEXT),
    Field("error", TEXT),
    Field("definition", TEXT),
    Field("kind", TEXT),
)


def list_view_status_rows(session: Session) -> Iterator[Row]:
    """The views and indexes of views that users made."""
    return _list_status_rows(session, auxiliary=False)


def list_auxiliary_status_rows(session: Session) -> Iterator[Row]:
    """The views that exist only to maintain others."""
    return _list_status_rows(session, auxiliary=True)


def _list_status_rows(session: Session, *, auxiliary: bool) -> Iterator[Row]:
    host = session.host
    host.views.deferred.sample_published_position()
    with host.begin() as reader:
        names = {schema.id: schema.name for schema in reader.catalog.schemas}
        for view in reader.catalog.views:
            if bool(view.part) is not auxiliary:
                continue
            ready = view.state is ObjectState.READY
            error = host.views.errors.get(view.id)
            yield (
                names[view.schema],
                view.name,
                view.state.value,
                view.maintenance.value,
                _describe_view_schedule(view),
                view.group,
                *(_measure_position_and_lag(session, reader, view) if ready else (None,) * 5),
                _count_shown_rows(session, reader, view) if ready else None,
                *host.views.measure_stored_size(view),
                *_measure_changes_and_cost(session, reader, view),
                host.views.deferred.get_maintenance_statistics(view).last_choice,
                _join_auxiliary_names(reader.catalog, view),
                _find_group_owner(reader, view),
                host.views.deferred.verified.get(view.id),
                None if error is None else str(error),
                view.definition,
                "index" if view.index is not None else "view",
            )


def _describe_view_schedule(view: View) -> str | None:
    if view.maintenance is Maintenance.IMMEDIATE:
        return None
    given = [f"{name} {text}" for name, text in view.options.select_texts(SCHEDULE_NAMES).items()]
    return given[0] if given else "close"


def _measure_position_and_lag(session: Session, reader: Transaction, view: View) -> Row:
    """Position, backlog, lag now and its distribution in milliseconds."""
    if view.maintenance is Maintenance.IMMEDIATE:
        return reader.position, 0, 0.0, 0.0, 0.0
    deferred, mark = session.host.views.deferred, require_applied_position(reader, view)
    upkeep = deferred.get_maintenance_statistics(view)
    lags = [upkeep.lag_quantile_s(0.5), upkeep.lag_quantile_s(0.99)]
    behind = _count_backlog_commits(session, reader, view, mark)
    now = deferred.samples.estimate_commit_age_after(mark, deferred.clock()) if behind else 0.0
    return mark, behind, now * 1000, *(None if lag is None else lag * 1000 for lag in lags)


def _count_backlog_commits(session: Session, reader: Transaction, view: View, mark: int) -> int:
    """The number of commits after the view's position, without records that have no changes."""
    return sum(1 for record in session.host.log.read(mark, reader.position) if record.change_count)


def _count_shown_rows(session: Session, reader: Transaction, view: View) -> int | None:
    """How many rows the view shows as it is stored; None when reading it fails."""
    catalog = reader.catalog
    plan = compile_plan(catalog, session.host.views.registry.build_reading_plan(catalog, view))
    try:
        return sum(1 for _ in plan(session.make_run_context(reader, ())))
    except Error:
        return None


def _measure_changes_and_cost(
    session: Session, reader: Transaction, view: View
) -> tuple[int | None, float | None]:
    """The number of applied changes, and microseconds for each."""
    if view.maintenance is Maintenance.DEFERRED:
        upkeep = session.host.views.deferred.get_maintenance_statistics(view)
        cost = upkeep.seconds_per_change
        return upkeep.changes, None if cost is None else cost * 1e6
    return None, _measure_immediate_change_cost(
        session, reader, view
    ) if view.state is ObjectState.READY else None


def _measure_immediate_change_cost(
    session: Session, reader: Transaction, view: View
) -> float | None:
    registry, log, relations = session.host.views.registry, session.host.log, frozenset(view.inputs)
    start = _find_start_of_measured_commits(session, reader)
    window = LogWindow(log.read_bytes(start, reader.position), (start,), reader.position, relations)
    changes = window.get_log_range_after(start).get_changes_of_relations(relations)
    if not changes:
        return None
    try:
        maintainer = registry.get_view_maintainer(reader.catalog, view)
        before = build_reader_before_changes(reader, changes, registry.indexes)
        started = time.perf_counter()
        maintainer.writes(changes, before, AdditionRecorder(), after=reader)
    except Error:
        return None
    return (time.perf_counter() - started) / len(changes) * 1e6


def _find_start_of_measured_commits(session: Session, reader: Transaction) -> int:
    """The position after which the last commits lie that are measured: not many, nor large ones,
    because the table is read by people who wait."""
    log, end = session.host.log, reader.position
    first = max(log.first_position - 1, end - MEASURED_COMMITS, 0)
    sizes = [(record.position, record.change_count) for record in log.read(first, end)]
    start, left = end, MEASURED_CHANGES_MAX
    for position, count in reversed(sizes):
        left -= count
        if left < 0:
            break
        start = position - 1
    return start


def _join_auxiliary_names(catalog: Catalog, view: View) -> str | None:
    found = [catalog.get(id_) for id_ in view.supporting_objects]
    named = [getattr(item, "name", str(item)) for item in found if item is not None]
    return ", ".join(named) or None


def _find_group_owner(reader: Transaction, view: View) -> str | None:
    held = claims.read_current_claim(reader, view.group) if view.group else None
    return None if held is None else held.owner
