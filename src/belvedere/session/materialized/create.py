"""Materialized views in a session: binding, creation, options, and plans that read them."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import AnyObject, Maintenance, ObjectState, View, ViewKind
from belvedere.catalog.view_options import (
    SCHEDULE_NAMES,
    ViewOptions,
    check_option_names,
    check_options,
    form_of,
)
from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.session.context.notices import add_notice_unless_silenced
from belvedere.session.context.result import Result
from belvedere.session.statement.bind import find_current_schema
from belvedere.sql import definitions as d
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS, bind_statement
from belvedere.sql.parse.script import parse_script
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.fold_constants import fold_nulls
from belvedere.sql.rules.prune_columns import prune_columns
from belvedere.sql.rules.push_predicates import push_predicates
from belvedere.sql.rules.simplify_projects import simplify_projects
from belvedere.sql.rules.subqueries.decorrelate import decorrelate
from belvedere.sql.statements import DataPlan
from belvedere.views.backfill.backfill_views import BuildControl
from belvedere.views.compile.compile_view import (
    find_foreign_table,
    find_untracked_dependency,
    find_zone_dependent_function,
)
from belvedere.views.compile.defined_view import BoundDefinition, NewView
from belvedere.views.read.expand_to_state import (
    expand_views_over_state,
    push_predicates_if_colocated,
)
from belvedere.views.read.expand_views import (
    expand_views,
    expand_views_by_id,
    list_views_read_by_plan,
    require_readable_view,
)
from belvedere.views.registry.transitions import edit_view_maintenance
from belvedere.views.registry.view_registry import hide_later_columns
from belvedere.views.state.build_state import waits_for_backfill_command

if TYPE_CHECKING:
    from belvedere.session.session import Session

BUILD_POLL_S = 0.1
NO_QUERY = "a view is defined by a query"
_RULES = (
    fold_nulls,
    decorrelate,
    push_predicates,
    simplify_projects,
    prune_columns,
    simplify_projects,
)


def bind_simplified_definition(catalog: Catalog, text: str) -> n.Node:
    """The plan of a view's definition, as it is compiled."""
    return _simplify_definition_plan(catalog, _bind_query_text(catalog, text))


def _simplify_definition_plan(catalog: Catalog, bound: n.Node) -> n.Node:
    """The plan of a definition over base tables, with sub-queries joined where they can be; those
    that stay read only the columns they use."""
    plan, context = (
        _expand_to_base_tables(catalog, bound),
        OptimizerContext(catalog, STORED_EXPRESSIONS),
    )
    for rule in _RULES:
        plan = rule(plan, context)

    def prune_subplan_columns(inner: n.Node) -> n.Node:
        return transform.map_subplans(prune_columns(inner, context), prune_subplan_columns)

    return transform.map_subplans(plan, prune_subplan_columns)


def bind_query_as_written(catalog: Catalog, text: str) -> n.Node:
    """The plan of a query as it is written, over base tables."""
    return _expand_to_base_tables(catalog, _bind_query_text(catalog, text))


def _expand_to_base_tables(catalog: Catalog, bound: n.Node) -> n.Node:
    return expand_views(
        catalog,
        bound,
        lambda v, _: bind_query_as_written(hide_later_columns(catalog, v), v.definition),
        reads_state=False,
    )


def _bind_query_text(catalog: Catalog, text: str) -> n.Node:
    (parsed,) = parse_script(text)
    bound = bind_statement(parsed.tree, catalog)
    if not isinstance(bound, DataPlan) or bound.changes:
        raise InvalidInput(NO_QUERY, sqlstate="42601")
    return bound.plan


# -- creating --------------------------------------------------------------------------------------


def create_materialized_view(session: Session, statement: d.CreateMaterializedView) -> Result:
    begun = session.transactions.has_transaction_to_keep
    name, schema = statement.name.name, statement.name.schema or "public"
    if statement.if_not_exists and session.catalog.find_relation(name, schema) is not None:
        if begun:
            return Result("CREATE MATERIALIZED VIEW")
        return _await_build_or_create(session, statement)
    require_maintainable_view(session, statement)
    if begun:
        change_catalog_in_transaction(
            session,
            lambda edit: session.host.views.create_view_in_edit(
                edit, bind_new_view(session, statement)
            ),
        )
    else:
        create_view_online(session, statement)
    add_notice_of_untracked_dependency(session, statement)
    _note_created_view(session, name, schema)
    return Result("CREATE MATERIALIZED VIEW")


def _note_created_view(session: Session, name: str, schema: str) -> None:
    """From now on statements are counted for the view too (`belvedere advise --review`)."""
    made = session.catalog.find_relation(name, schema)
    if made is not None:
        existing = {view.id for view in session.catalog.views}
        session.shared.statistics.note_created_view(made.id, existing)


def require_maintainable_view(session: Session, statement: d.CreateMaterializedView) -> None:
    """Refuse what no view can have."""
    _require_maintainable_query(statement)
    _require_no_schedule_of_foreign(statement)
    _require_zone_independent_query(session, statement.plan)


def create_view_online(
    session: Session, statement: d.CreateMaterializedView, *, replaces: int | None = None
) -> None:
    """Create a view and fill it while others write; `replaces` is the view whose place it takes."""
    session.transactions.end_transaction_that_only_read()
    with session.host.views.backfills.use_build_control(
        _make_build_control(session, statement.name.name, statement.plan)
    ):
        new = bind_new_view(session, statement)
        session.host.views.create_views([replace(new, replaces=replaces)])


def add_notice_of_untracked_dependency(
    session: Session, statement: d.CreateMaterializedView
) -> None:
    part = find_untracked_dependency(statement.plan)
    if part is not None:
        said = f"depends on {part}: its rows are those of the last change of a table or REFRESH"
        add_notice_unless_silenced(session, f'view "{statement.name.name}" {said}')


def change_catalog_in_transaction(
    session: Session, change: Callable[[CatalogEdit], object]
) -> None:
    """Make a change of the catalog a part of the open transaction, whose commit fills the views and
    indexes that it creates."""
    state = session.transactions
    if state.open is None:
        session.begin_implicit_transaction().begin_first_statement()
    assert state.open is not None
    edit = CatalogEdit(state.open.catalog)
    try:
        change(edit)
        state.apply_catalog_edit(edit)
    except BaseException:
        state.fail()
        raise


def create_index_stored_as_view(session: Session, new: NewView) -> None:
    """Create an index that is stored as a view: online, or in the transaction that has begun."""
    if session.transactions.has_transaction_to_keep:
        change_catalog_in_transaction(
            session, lambda edit: session.host.views.create_view_in_edit(edit, new)
        )
    else:
        session.transactions.end_transaction_that_only_read()
        session.host.views.create_views([new])


def bind_new_view(session: Session, statement: d.CreateMaterializedView) -> NewView:
    """What the statement asks for, with the plan of its definition."""
    options, catalog = check_options(dict(statement.options)), session.catalog
    bound = _reuse_or_rebind_query(session, catalog, statement)
    named = list_views_read_by_plan(catalog, bound)
    for view in named:
        if session.host.catalog.get(view.id) is not None:  # not made by the open transaction
            require_readable_view(view)
    return NewView(
        statement.name.name,
        statement.query,
        options.maintenance,
        statement.name.schema or "public",
        options,
        columns=tuple(column.name for column in statement.columns),
        reads=tuple(view.id for view in named),
        bound=BoundDefinition(_simplify_definition_plan(catalog, bound), catalog.version),
        owner=session.identity.role,
    )


def _reuse_or_rebind_query(
    session: Session, catalog: Catalog, statement: d.CreateMaterializedView
) -> n.Node:
    """The plan the statement was bound to; that of its text, as the catalog keeps it, where the two
    may differ: the catalog has changed since, or the session has a schema or a zone of its own."""
    own_zone = session.settings.zone is not datetime.UTC
    own_schema = find_current_schema(session) != "public"
    if own_zone or own_schema or statement.catalog_version != catalog.version:
        return _bind_query_text(catalog, statement.query)
    nodes = transform.walk_plan(statement.plan)
    if any(isinstance(node, n.Insert | n.Update | n.Delete) for node in nodes):
        raise InvalidInput(NO_QUERY, sqlstate="42601")
    return statement.plan


def _require_maintainable_query(statement: d.CreateMaterializedView) -> None:
    """Refuse system tables, row locks, WITH NO DATA."""
    for node in transform.walk_plan(statement.plan):
        if isinstance(node, n.VirtualScan):
            raise Unsupported(
                "system table in a materialized view", detail="its rows are not in the log"
            )
        if isinstance(node, n.Lock):
            raise Unsupported("row locks in a materialized view", hint="leave out FOR UPDATE")
    if not statement.with_data:
        raise Unsupported(
            "a materialized view with no data",
            hint="WITH (backfill = 'later') leaves the filling to `belvedere pipeline backfill`",
        )


def _require_no_schedule_of_foreign(statement: d.CreateMaterializedView) -> None:
    """Refuse a schedule of what no log says has changed."""
    given = [name for name, _ in statement.options if name in SCHEDULE_NAMES]
    table = find_foreign_table(statement.plan) if given else None
    if table is not None:
        raise Unsupported(
            f"{given[0]} of a view over a foreign table",
            hint="REFRESH MATERIALIZED VIEW computes it again",
            table=table,
        )


def _require_zone_independent_query(session: Session, plan: n.Node) -> None:
    """Refuse functions of the session's zone: definitions in the catalog are read in UTC."""
    if session.settings.zone is not datetime.UTC:
        name = find_zone_dependent_function(plan)
        if name is not None:
            raise Unsupported(
                "function of the session's time zone in a materialized view",
                detail="a view is kept in UTC",
                hint="name the zone with AT TIME ZONE, or set the time zone to UTC first",
                function=name,
            )


def _make_build_control(session: Session, name: str, plan: n.Node) -> BuildControl:
    """A build that the statement's cancellation stops, and that reports progress to the session."""
    report = session.on_progress
    if report is None:
        return BuildControl(check=session.interrupt.check)
    scans = [node for node in transform.walk_plan(plan) if isinstance(node, n.Scan)]
    expected = sum(session.shared.estimate_table_rows(scan.relation) for scan in scans)
    return BuildControl(
        check=session.interrupt.check,
        progress=lambda rows: report(f"filling {name}", rows, max(expected, rows)),
    )


def _await_build_or_create(session: Session, statement: d.CreateMaterializedView) -> Result:
    """Wait until the view that another session is backfilling is ready; create it when that session
    gives up."""
    name, schema = statement.name.name, statement.name.schema or "public"
    while True:
        found = session.host.catalog.find_relation(name, schema)
        if (
            not isinstance(found, View)
            or found.state is not ObjectState.BUILDING
            or waits_for_backfill_command(found)
        ):
            break
        session.interrupt.check()
        session.host.visibility.wait_past(session.host.position, BUILD_POLL_S)
    if found is None:
        session.transactions.end_transaction_that_only_read()
        return create_materialized_view(session, statement)
    return Result("CREATE MATERIALIZED VIEW")


def apply_view_options(
    session: Session, edit: CatalogEdit, view: View, action: d.SetOptions | d.ResetOptions
) -> None:
    """ALTER MATERIALIZED VIEW .. SET and RESET, online: the commit brings the state to its
    position. A deferred view is caught up first, so that little is left for the commit."""
    merged = merge_and_check_alter_options(session, view, action)
    deferred_before = view.maintenance is Maintenance.DEFERRED
    if deferred_before and merged.maintenance is Maintenance.IMMEDIATE:
        session.host.views.catch_up_view(view)
    edit_view_maintenance(edit, view, merged.maintenance, merged)


def merge_and_check_alter_options(
    session: Session, view: View, action: d.SetOptions | d.ResetOptions
) -> ViewOptions:
    """The options of a view after ALTER."""
    if view.kind is ViewKind.INDEX:
        raise Unsupported("options of an index", hint="drop it and create it again")
    # With what no user writes: a view that is to replace another is refused here.
    if isinstance(action, d.ResetOptions):
        options = check_options(_drop_reset_options(view.stored_options, action.names))
    else:
        options = check_options(_apply_altered_options(view.stored_options, dict(action.options)))
    if form_of(options, view.index) != view.form:
        raise Unsupported("another form of a view", hint="use CREATE OR REPLACE MATERIALIZED VIEW")
    return options


def _drop_reset_options(before: dict[str, str], names: tuple[str, ...]) -> dict[str, str]:
    """The options of a view after RESET: an immediate one has no schedule."""
    check_option_names(names)
    gone = {*names, *(SCHEDULE_NAMES if "maintenance" in names else ())}
    return {name: text for name, text in before.items() if name not in gone}


def _apply_altered_options(before: dict[str, str], given: dict[str, str]) -> dict[str, str]:
    """The options of a view after ALTER: a new schedule replaces the old one, and an immediate view
    has none; keep_changes = 'off' ends the changefeed."""
    immediate = given.get("maintenance", "").lower() == Maintenance.IMMEDIATE.value
    replaced = immediate or given.keys() & set(SCHEDULE_NAMES)
    kept = {k: v for k, v in before.items() if not (replaced and k in SCHEDULE_NAMES)}
    merged = {**kept, **given}
    if merged.get("keep_changes", "").lower() == "off":
        del merged["keep_changes"]
    return merged


# -- reading ---------------------------------------------------------------------------------------


def expand_views_of_transaction(session: Session, plan: n.Node) -> n.Node:
    """The plan with the views of the open transaction replaced by their definitions."""
    catalog, own = session.catalog, list_views_of_transaction(session)
    read = list_views_read_by_plan(catalog, plan) if own else []
    plans = {
        view.id: bind_query_as_written(hide_later_columns(catalog, view), view.definition)
        for view in read
        if view.id in own
    }
    return expand_views_by_id(plan, plans) if plans else plan


def list_views_of_transaction(session: Session) -> set[int]:
    """Views that the open transaction creates, which have no state yet, or lets be maintained in
    another way, for which its commit makes the state ready."""
    catalog, published = session.catalog, session.host.catalog
    if catalog is published:
        return set()
    return {v.id for v in catalog.views if _gets_state_by_commit(v, published.get(v.id))}


def _gets_state_by_commit(view: View, published: AnyObject | None) -> bool:
    if published is None:
        return view.state is ObjectState.BUILDING
    return isinstance(published, View) and published.maintenance is not view.maintenance


def expand_views_to_state(session: Session, catalog: Catalog, plan: n.Node) -> n.Node:
    """The plan with views replaced by plans over their state."""
    return expand_views_over_state(session.host.views.registry, catalog, plan)


def expand_deferred_to_definitions(session: Session, catalog: Catalog, plan: n.Node) -> n.Node:
    """The plan with deferred views replaced by their definitions, others by plans over state."""

    def build_state_or_definition_plan(view: View, scan: n.Scan) -> n.Node:
        if view.maintenance is Maintenance.DEFERRED:
            return bind_query_as_written(hide_later_columns(catalog, view), view.definition)
        return session.host.views.registry.build_scan_reading_plan(catalog, view, scan)

    return expand_views(
        catalog, push_predicates_if_colocated(catalog, plan), build_state_or_definition_plan
    )


def list_deferred_views_of_plan(catalog: Catalog, plan: n.Node) -> tuple[View, ...]:
    if not catalog.views:
        return ()
    return tuple(
        v for v in list_views_read_by_plan(catalog, plan) if v.maintenance is Maintenance.DEFERRED
    )
