"""Materialized views in a session: creating, reading as fresh as asked, refreshing, verifying."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Maintenance, View
from belvedere.errors import InvalidInput, Unsupported
from belvedere.execution.choose import Choice, Tier, compile_for
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.direct.context import row_keys
from belvedere.execution.duck.rows import rows_of
from belvedere.execution.run import Rows
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field, Fields
from belvedere.session.freshness import FreshnessKind
from belvedere.session.result import Result
from belvedere.sql import definitions as d
from belvedere.sql.bind.statement import TEXTS, bind_statement
from belvedere.sql.parse.script import parse_script
from belvedere.sql.rules.context import Context
from belvedere.sql.rules.decorrelate import decorrelate
from belvedere.sql.rules.prune_columns import prune_columns
from belvedere.sql.rules.push_predicates import push_predicates
from belvedere.sql.rules.simplify_projects import simplify_projects
from belvedere.sql.statements import DataPlan
from belvedere.txn.border import Reader
from belvedere.txn.transaction import Transaction
from belvedere.types import BIGINT, BOOLEAN, TEXT, Row
from belvedere.views.keep import pinned
from belvedere.views.read import views_in, with_views

if TYPE_CHECKING:
    from belvedere.session.session import Session

_OPTIONS = ("maintenance", "placement", "join", "max_lag", "refresh_every", "strict")
VERIFIED = (
    Field("view", TEXT),
    Field("position", BIGINT),
    Field("rows", BIGINT),
    Field("missing", BIGINT),
    Field("unexpected", BIGINT),
    Field("ok", BOOLEAN),
)


def bind_definition(catalog: Catalog, text: str) -> n.Node:
    """The plan of a view's definition, over base tables, with sub-queries joined where they can
    be."""
    plan, context = written(catalog, text), Context(catalog, TEXTS)
    for rule in (decorrelate, push_predicates, simplify_projects, prune_columns, simplify_projects):
        plan = rule(plan, context)
    return plan


def written(catalog: Catalog, text: str) -> n.Node:
    """The plan of a query as it is written, over base tables."""
    plan = _bound(catalog, text)
    return with_views(catalog, plan, lambda v: written(pinned(catalog, v), v.definition))


def _bound(catalog: Catalog, text: str) -> n.Node:
    (parsed,) = parse_script(text)
    bound = bind_statement(parsed.tree, catalog)
    if not isinstance(bound, DataPlan) or bound.changes:
        raise InvalidInput("a view is defined by a query", sqlstate="42601")
    return bound.plan


# -- creating --------------------------------------------------------------------------------------


def create_view(session: Session, statement: d.CreateMaterializedView) -> Result:
    state = session.transactions
    if state.explicit or (state.open is not None and state.open.changes):
        raise Unsupported(
            "create materialized view inside a transaction", hint="commit first: it fills itself"
        )
    name, schema = statement.name.name, statement.name.schema or "public"
    if statement.if_not_exists and session.catalog.find(name, schema) is not None:
        return Result("CREATE MATERIALIZED VIEW")
    state.rollback()
    options = dict(statement.options)
    session.host.create_view(
        name,
        statement.query,
        _maintenance(options),
        schema=schema,
        options=options,
        columns=[column.name for column in statement.columns],
        reads=_views_named(session.catalog, statement.query),
    )
    return Result("CREATE MATERIALIZED VIEW")


def _views_named(catalog: Catalog, text: str) -> tuple[int, ...]:
    """The materialized views a definition names."""
    return tuple(view.id for view in views_in(catalog, _bound(catalog, text)))


def _maintenance(options: dict[str, str]) -> Maintenance:
    for name in options:
        if name not in _OPTIONS:
            raise InvalidInput(
                "unknown option of a materialized view",
                sqlstate="22023",
                hint="known are " + ", ".join(_OPTIONS),
                name=name,
            )
    for name, only in (("placement", "remote"), ("join", "materialized"), ("strict", "true")):
        if options.get(name, only).lower() != only:
            raise Unsupported(f"{name} = '{options[name]}'", hint=f"leave it at '{only}'")
    for name in ("max_lag", "refresh_every"):
        if name in options:
            raise Unsupported(f"option {name}", hint="deferred views follow as closely as they can")
    try:
        return Maintenance(options.get("maintenance", "immediate").lower())
    except ValueError:
        raise InvalidInput(
            "invalid maintenance",
            sqlstate="22023",
            hint="use 'immediate' or 'deferred'",
            found=options["maintenance"],
        ) from None


# -- reading ---------------------------------------------------------------------------------------


def readable_plan(session: Session, catalog: Catalog, plan: n.Node) -> n.Node:
    """The plan with views replaced by plans over their state."""
    if not catalog.views:
        return plan
    return with_views(catalog, plan, lambda view: session.host.keeper.reading(catalog, view))


def deferred_in(catalog: Catalog, plan: n.Node) -> tuple[View, ...]:
    if not catalog.views:
        return ()
    return tuple(v for v in views_in(catalog, plan) if v.maintenance is Maintenance.DEFERRED)


def fresh_reader(session: Session, transaction: Transaction, views: tuple[View, ...]) -> Reader:
    """What the statement reads: with 'any', deferred views as far as they are; otherwise with what
    the log has for them put on top, so that everything is at the transaction's position."""
    if not views or session.freshness.kind is FreshnessKind.ANY:
        return transaction
    return session.host.with_pending(transaction, views)


# -- refresh, verify, repair -----------------------------------------------------------------------


def maintain(session: Session, statement: d.MaintainView) -> Result:
    view = session.catalog.expect(View, statement.name.name, statement.name.schema or "public")
    match statement.verb:
        case "refresh":
            if view.maintenance is Maintenance.DEFERRED:
                session.host.catch_up(view)
            return Result("REFRESH MATERIALIZED VIEW")
        case "verify":
            return Result("VERIFY", VERIFIED, [verify(session, view)], 1)
        case _:
            raise Unsupported("repair materialized view", hint="drop the view and create it again")


def verify(session: Session, view: View) -> Row:
    """Recompute the view by DuckDB at the position it has reached, and compare, row for row."""
    host = session.host
    with host.begin() as transaction:
        catalog = transaction.catalog
        tables, position = host.at_watermark(transaction, view)
        definition = written(pinned(catalog, view), view.definition)
        choice = Choice(Tier.DUCKDB, "verify", 0)
        recomputed = compile_for(catalog, definition, choice, session.shared.engine)
        reading = compile_plan(catalog, host.keeper.reading(catalog, view))
        expected = _bag(session, tables, recomputed, definition.fields)
        found = _bag(session, transaction, reading, definition.fields)
    missing, unexpected = (expected - found).total(), (found - expected).total()
    return (view.name, position, found.total(), missing, unexpected, not missing + unexpected)


def _bag(session: Session, reader: Reader, rows: Rows, fields: Fields) -> Counter[Row]:
    found = rows(session.new_run(reader, ()))
    table = getattr(found, "table", None)
    types = tuple(field.type for field in fields)
    listed = found if table is None else rows_of(table, types)
    key = row_keys(fields)
    return Counter(tuple(map(_rounded, key(row))) for row in listed)


def _rounded(value: Any) -> Any:
    """A plain query may add floats in any order; twelve digits are the same in all of them."""
    return f"{value:.12g}" if isinstance(value, float) else value
