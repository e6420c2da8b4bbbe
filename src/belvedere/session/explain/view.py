"""EXPLAIN of views and writes: how a view is stored and maintained, and the cost of each write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.foreign_key_graph import root_table
from belvedere.catalog.model import Maintenance, Table, View
from belvedere.catalog.view_options import ViewOptions
from belvedere.plan import nodes as n
from belvedere.session.materialized import create
from belvedere.sql import definitions as d
from belvedere.views.compile.compile_view import MaintenancePlan
from belvedere.views.compile.required_indexes import find_view_required_indexes
from belvedere.views.delta.delta_tree import FullRecompute, collect_read_slots, collect_relations
from belvedere.views.explain.cost_estimate import (
    BACKFILL_ROWS_PER_SECOND,
    estimate_change_cost_by_table,
    estimate_entries_and_bytes,
    estimate_own_state_cost,
    format_count_with_noun,
)
from belvedere.views.explain.describe_view import build_explain_lines

if TYPE_CHECKING:
    from belvedere.session.session import Session


def describe_view_statement(
    session: Session, statement: d.MaintainView | d.CreateMaterializedView
) -> list[str]:
    """How a view is kept, or would be, and what it makes each write do."""
    catalog, registry, name = session.catalog, session.host.views.registry, statement.name
    if isinstance(statement, d.CreateMaterializedView):
        new = create.bind_new_view(session, statement)
        compiled = registry.compile_new_view_plan(catalog, new)
        options = _describe_view_options(new.options)
        head = f"view {name.name} would be {new.maintenance.value}{options}"
        return [
            head,
            *build_explain_lines(catalog, compiled),
            *_describe_creation_costs(session, compiled),
        ]
    view = catalog.require_relation(View, name.name, name.schema or "public")
    compiled = registry.get_maintenance_plan(catalog, view)
    head = f"view {name.name} is {view.maintenance.value}{_describe_view_options(view.options)}"
    batches = _describe_batch_engine(session, catalog, view)
    return [
        head,
        *build_explain_lines(catalog, compiled),
        *_describe_auxiliary_views(catalog, view),
        *batches,
    ]


def _describe_batch_engine(session: Session, catalog: Catalog, view: View) -> Iterator[str]:
    """The engine for batches of a deferred view, by size; and that of the last batch, with why."""
    if view.maintenance is Maintenance.DEFERRED:
        registry, upkeep = (
            session.host.views.registry,
            session.host.views.deferred.get_maintenance_statistics(view),
        )
        yield registry.tiers.build_tier_explain_line(
            view, registry.get_view_maintainer(catalog, view), session.host.position
        )
        if upkeep.last_choice is not None:
            yield f"last batch: {upkeep.last_choice}"
        errors = registry.tiers.costs.describe_errors(view.id)
        if errors is not None:
            yield errors


def _describe_view_options(options: ViewOptions) -> str:
    words = [
        "placement local" if options.local else "",
        "join co-located" if options.colocated else "",
        "" if options.strict else "not strict",
    ]
    return "".join(f", {word}" for word in words if word)


def _describe_auxiliary_views(catalog: Catalog, view: View) -> Iterator[str]:
    """The auxiliary views it stands on, by name."""
    for id_ in view.auxiliary_views:
        found = catalog.get(id_)
        if isinstance(found, View):
            users = len([v for v in catalog.views if id_ in v.auxiliary_views])
            yield f'kept as "{found.name}", {users} user{"" if users == 1 else "s"}'


def _describe_creation_costs(session: Session, compiled: MaintenancePlan) -> Iterator[str]:
    """The price: indexes and auxiliary views to be made, each table's changes, storage, time."""
    catalog = session.catalog
    requirements = find_view_required_indexes(catalog, compiled)
    for requirement in requirements:
        table = catalog.table(requirement.relation)
        columns = ", ".join(table.columns[slot].name for slot in requirement.slots)
        yield f"index to be made on {table.name} ({columns})"
    for relation, price in estimate_change_cost_by_table(catalog, compiled, requirements).items():
        yield f"a new row of {catalog.table(relation).name} costs {price}"
    estimate = session.shared.make_row_estimator(catalog)
    entries, size = estimate_entries_and_bytes(compiled, estimate)
    stored = format_count_with_noun(entries, "entry", "entries")
    yield f"storage: about {stored}, {format_count_with_noun(size, 'byte')}"
    rows = sum(
        int(session.shared.estimate_table_rows(relation))
        for relation in collect_relations(compiled.tree)
    )
    seconds = (rows + entries) / BACKFILL_ROWS_PER_SECOND
    yield f"build: about {seconds:.3f} s, {format_count_with_noun(rows, 'row')} to be read"


# -- writes ----------------------------------------------------------------------------------------


def describe_write_effects(session: Session, node: n.Node) -> list[str]:
    """What a write locks, reads and touches."""
    while isinstance(node, n.With):
        node = node.body
    if not isinstance(node, n.Insert | n.Update | n.Delete):
        return []
    catalog = session.catalog
    table = catalog.table(node.relation)
    root = root_table(catalog, table)
    lines = [f"locks: root key of {root.name}, one per row"]
    lines.append("key reads: the primary key of each row")
    changed = _find_updated_slots(node)
    for index in catalog.table_indexes(table.id):
        parts = {part.slot for part in index.parts} | set(index.include)
        touched = changed is None or None in parts or bool(parts & changed) or index.where
        if touched:
            lines.append(f"index: {index.name}{' unique' if index.unique else ''}")
    for view in catalog.dependent_views(table.id):
        comes = isinstance(node, n.Insert)
        lines.append(_describe_effect_on_view(session, view, table, changed, comes=comes))
    for key in table.foreign_keys:
        if key.enforced:
            lines.append(f"check at commit: foreign key {key.name}")
    return lines


def _find_updated_slots(node: n.Insert | n.Update | n.Delete) -> set[int] | None:
    """The columns an UPDATE sets; None: all of them."""
    return {one.ordinal for one in node.assignments} if isinstance(node, n.Update) else None


def _describe_effect_on_view(
    session: Session, view: View, table: Table, changed: set[int] | None, *, comes: bool
) -> str:
    what = "auxiliary view" if view.part else "view"
    if view.maintenance is Maintenance.DEFERRED:
        return f"{what}: {view.name}, deferred: nothing now"
    compiled = session.host.views.registry.get_maintenance_plan(session.catalog, view)
    used = collect_read_slots(compiled.tree, table.id)
    if changed is not None and not isinstance(compiled.tree, FullRecompute) and not used & changed:
        return f"{what}: {view.name}, no column of it is set: nothing"
    price = estimate_own_state_cost(session.catalog, compiled, table.id, comes=comes)
    return f"{what}: {view.name}, {price}"
