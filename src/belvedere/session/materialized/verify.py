"""REFRESH, VERIFY and REPAIR of materialized views.

VERIFY recomputes by DuckDB from the definition as it is written, never by the view's maintenance
code. REPAIR adds what the stored state lacks. State is linear, so the difference found at a
snapshot stays correct with what commits have added in the meantime.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Maintenance, ObjectState, View
from belvedere.errors import InvalidInput
from belvedere.execution.choose_tier import ExecutionChoice, Tier, compile_for_tier
from belvedere.execution.duckdb.rows import rows_of
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import row_keys
from belvedere.execution.run import Rows
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field, Fields
from belvedere.session.context.notices import add_notice_unless_silenced
from belvedere.session.context.result import Result
from belvedere.session.materialized import view_indexes
from belvedere.session.materialized.create import (
    bind_query_as_written,
    bind_simplified_definition,
    list_views_of_transaction,
)
from belvedere.sql import definitions as d
from belvedere.txn.contracts import Reader
from belvedere.txn.history.readers import OverlayReader
from belvedere.types import BIGINT, BOOLEAN, TEXT, Row
from belvedere.views.delta.tie_break import has_ambiguous_order, with_total_order
from belvedere.views.read.reading_errors import build_verify_error
from belvedere.views.registry.created_objects import compute_created_rows
from belvedere.views.registry.view_registry import hide_later_columns

if TYPE_CHECKING:
    from belvedere.session.session import Session

_Counts = Counter[Row]

VERIFY_FIELDS = (
    Field("view", TEXT),
    Field("position", BIGINT),
    Field("rows", BIGINT),
    Field("missing", BIGINT),
    Field("unexpected", BIGINT),
    Field("ok", BOOLEAN),
)


def run_refresh_verify_or_repair(session: Session, statement: d.MaintainView) -> Result:
    view = session.catalog.require_relation(
        View, statement.name.name, statement.name.schema or "public"
    )
    if session.host.catalog.get(view.id) is None:
        return _refresh_or_verify_uncommitted_view(session, view, statement.verb)
    match statement.verb:
        case "refresh":
            _refresh_view(session, view)
            return Result("REFRESH MATERIALIZED VIEW")
        case "verify":
            return Result("VERIFY", VERIFY_FIELDS, [verify_view(session, view)], 1)
        case _:
            session.host.views.repair_view(view)
            return Result("REPAIR", VERIFY_FIELDS, [verify_view(session, view)], 1)


def _refresh_or_verify_uncommitted_view(session: Session, view: View, verb: str) -> Result:
    """The same for a view that the open transaction has created: it has no rows of its own yet.
    Those that the commit would give it now are verified, and there is nothing to repair."""
    if verb != "refresh":
        return Result(verb.upper(), VERIFY_FIELDS, [_verify_uncommitted_view(session, view)], 1)
    add_notice_unless_silenced(session, f'view "{view.name}" is filled by the commit')
    return Result("REFRESH MATERIALIZED VIEW")


def _refresh_view(session: Session, view: View) -> None:
    """Bring a view to the newest position. One whose rows depend on more than its tables is
    computed again, with its indexes: no change of a table says that now() went on."""
    if view.maintenance is Maintenance.DEFERRED:
        view_indexes.refresh_view_and_indexes(session, view)
    part = session.host.views.find_untracked_dependency(view)
    if part is not None:
        for one in (view, *view_indexes.list_view_indexes(session.catalog, view)):
            session.host.views.repair_view(one)
        said = f"depends on {part}: its rows are those of now, until the next REFRESH or change"
        add_notice_unless_silenced(session, f'view "{view.name}" {said}')
    elif view.maintenance is Maintenance.IMMEDIATE:
        add_notice_unless_silenced(
            session, f'view "{view.name}" is immediate, it is always up to date'
        )


def verify_view(session: Session, view: View) -> Row:
    """Recompute the view by DuckDB at the position it has reached, and compare, row for row."""
    host = session.host
    with host.begin() as transaction:
        tables, position = host.views.open_tables_at_watermark(transaction, view)
        expected, found = _compute_expected_and_stored_rows(session, view, tables, transaction)
    verified = _build_verify_row(view, position, expected, found)
    _, _, _, missing, unexpected, ok = verified
    said = "ok" if ok else f"{missing} missing, {unexpected} unexpected"
    host.views.deferred.verified[view.id] = f"{said} at {position}"
    return verified


def _verify_uncommitted_view(session: Session, view: View) -> Row:
    """The same for the rows that the commit of the open transaction would give a view now."""
    transaction = session.transactions.open
    assert transaction is not None
    catalog, registry = transaction.catalog, session.host.views.registry
    building = [one for one in catalog.views if one.id in list_views_of_transaction(session)]
    created = [one for one in building if session.host.catalog.get(one.id) is None]
    ready = catalog.with_objects(
        {one.id: msgspec.structs.replace(one, state=ObjectState.READY) for one in created}
    )
    rows = compute_created_rows(registry, ready, [one.id for one in created], transaction)
    after = OverlayReader(transaction, rows, transaction.position, ready)
    expected, found = _compute_expected_and_stored_rows(session, view, transaction, after)
    return _build_verify_row(view, transaction.position, expected, found)


def _build_verify_row(view: View, position: int, expected: _Counts, found: _Counts) -> Row:
    missing, unexpected = (expected - found).total(), (found - expected).total()
    return (view.name, position, found.total(), missing, unexpected, not missing + unexpected)


def _compute_expected_and_stored_rows(
    session: Session, view: View, tables: Reader, state: Reader
) -> tuple[_Counts, _Counts]:
    """The rows of a view as they should be, from its tables, and as they are kept."""
    catalog, registry = state.catalog, session.host.views.registry
    kept = registry.get_maintenance_plan(catalog, view).auxiliary_definition
    definition = _make_reference_plan(catalog, view) if kept is None else with_total_order(kept)
    choice = ExecutionChoice(Tier.DUCKDB, "verify", 0)
    recomputed = compile_for_tier(catalog, definition, choice, session.shared.engine)
    reading = compile_plan(catalog, registry.build_verification_plan(catalog, view))
    try:
        expected = _collect_row_counts(session, tables, recomputed, definition.fields)
        found = _collect_row_counts(session, state, reading, definition.fields)
    except InvalidInput as error:
        raise build_verify_error(registry, catalog, view, state, error) from error
    return expected, found


def _make_reference_plan(catalog: Catalog, view: View) -> n.Node:
    """The plan of the definition as it is written; where its order leaves ties, over the columns
    that it uses, with ties broken as the view breaks them."""
    seen = hide_later_columns(catalog, view)
    plan = bind_query_as_written(seen, view.definition)
    return (
        with_total_order(bind_simplified_definition(seen, view.definition))
        if has_ambiguous_order(plan)
        else plan
    )


def _collect_row_counts(session: Session, reader: Reader, rows: Rows, fields: Fields) -> _Counts:
    found = rows(session.make_run_context(reader, ()))
    table = getattr(found, "table", None)
    types = tuple(field.type for field in fields)
    listed = found if table is None else rows_of(table, types)
    key = row_keys(fields)
    return Counter(tuple(map(_round_if_float, key(row))) for row in listed)


def _round_if_float(value: Any) -> Any:
    """A plain query may add floats in any order; twelve digits are the same in all of them. 0 and
    -0 are equal, and a query may return either."""
    return f"{value + 0.0:.12g}" if isinstance(value, float) else value
