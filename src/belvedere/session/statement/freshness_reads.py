"""Fast path of reads at a freshness: of tables and immediate views at any freshness, and of a few
rows of one deferred view that is fresh enough as it is.

The watermark is read before the rows, without a snapshot: what is shown is of the watermark's
position, or of a later one. Whatever is not plainly fresh enough takes the general path, where a
view is caught up, waited for, or bypassed (`materialized.freshness_policy`), and so does a session
inside a transaction.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from belvedere.errors import Error
from belvedere.execution.python.statements.point_statements import FastPathRead, FastPathRun
from belvedere.session.context.freshness import Freshness, FreshnessKind, parse_freshness
from belvedere.session.context.result import Result
from belvedere.session.statement.compiled_statement import CompiledStatement
from belvedere.session.statement.parameters import ParameterTypesDiffer
from belvedere.txn.contracts import Reader
from belvedere.views.state.watermarks import read_applied_position

if TYPE_CHECKING:
    from belvedere.session.session import Session


def run_at_freshness(
    session: Session,
    entry: CompiledStatement | None,
    text: str,
    parameters: Sequence[Any],
    freshness: str,
) -> Result:
    """Run a text with a freshness of its own. Plans are the same for every freshness."""
    if entry is not None and entry.tier is session.settings.tier:
        result = _try_fast_read_at_freshness(session, entry, parameters, freshness)
        if result is not None:
            return result
    return session.run_with_timeout(
        lambda: _run_by_general_path(session, entry, text, parameters, freshness)
    )


def _run_by_general_path(
    session: Session,
    entry: CompiledStatement | None,
    text: str,
    parameters: Sequence[Any],
    freshness: str,
) -> Result:
    with session.hold_freshness(freshness):
        if entry is None or entry.tier is not session.settings.tier:
            return session.run_script_text(text, parameters)
        with contextlib.suppress(ParameterTypesDiffer):
            return session.run_cached_statement(entry, parameters)
        return session.run_script_text(text, parameters)


def _try_fast_read_at_freshness(
    session: Session, entry: CompiledStatement, parameters: Sequence[Any], freshness: str
) -> Result | None:
    wanted = parse_freshness(freshness)
    if session.transactions.failed:
        return None
    if entry.deferred_read is not None:
        return try_read_deferred_view(session, entry, parameters, wanted)
    if entry.fast_read is None or wanted.kind is FreshnessKind.TOKEN:
        return None
    if wanted.wants_newest and session.host.row_atomic:
        return None
    return _try_read_published_rows(session, entry, entry.fast_read, parameters)


def try_read_deferred_view(
    session: Session, entry: CompiledStatement, parameters: Sequence[Any], wanted: Freshness
) -> Result | None:
    """Read the stored rows of the deferred view that a statement reads alone, if they are fresh
    enough; None: the general path has to run it."""
    read, state, (view,) = entry.deferred_read, session.transactions, entry.deferred
    views = session.host.views
    if read is None or entry.rewriting is not None or view.id in views.errors:
        return None
    if wanted.kind is FreshnessKind.ANY:
        return _try_read_published_rows(session, entry, read, parameters)
    if wanted.kind is FreshnessKind.TOKEN:
        return None
    seen, reader = state.newest_seen_position, session.shared.get_published_reader()
    views.deferred.sample_published_position()
    mark = read_applied_position(reader, view)
    enough = seen if wanted.kind is FreshnessKind.SESSION else max(seen, reader.position)
    if mark is None or mark < enough:
        return None
    result = _try_read_published_rows(session, entry, read, parameters)
    if result is not None and wanted.kind is FreshnessKind.SESSION:
        # What the session may not fall behind is what it was shown, not what was published.
        state.last_reader = None
        state.position = mark
        state.floor = max(state.floor, mark)
    return result


def _try_read_published_rows(
    session: Session, entry: CompiledStatement, read: FastPathRead, parameters: Sequence[Any]
) -> Result | None:
    state, started = session.transactions, time.perf_counter()
    if state.open is not None or not session.autocommit:
        return None
    reader: Reader = session.shared.get_published_reader()
    if reader.catalog is not entry.catalog:
        return None
    try:
        rows = read(reader, FastPathRun(entry.convert(parameters), session.services))
    except ParameterTypesDiffer:
        return None
    except Error:
        entry.record.errors += 1
        raise
    if rows is None:
        return None
    state.last_reader = reader
    entry.record.calls += 1
    entry.record.rows += len(rows)
    entry.record.total_us += (time.perf_counter() - started) * 1e6
    origins = entry.data.origins
    return Result(
        "SELECT", entry.data.plan.fields, rows, len(rows), plain=entry.plain, origins=origins
    )
