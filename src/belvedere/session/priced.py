"""EXPLAIN of views and writes: how a view is stored and maintained, and the cost of each write."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.graph import root_table
from belvedere.catalog.model import Maintenance, Table, View
from belvedere.catalog.view_options import ViewOptions
from belvedere.plan import nodes as n
from belvedere.session import views
from belvedere.sql import definitions as d
from belvedere.views.compile import Compiled
from belvedere.views.explain import explained
from belvedere.views.price import ROWS_PER_SECOND, change_price, counted, prices, storage
from belvedere.views.tree import Whole, inputs_of, slots_of
from belvedere.views.wishes import required_indexes

if TYPE_CHECKING:
    from belvedere.session.session import Session


def view_lines(session: Session, statement: d.MaintainView | d.CreateMaterializedView) -> list[str]:
    """How a view is kept, or would be, and what it makes each write do."""
    catalog, keeper, name = session.catalog, session.host.views.keeper, statement.name
    if isinstance(statement, d.CreateMaterializedView):
        new = views.new_view(session, statement)
        compiled = keeper.compile_new(catalog, new)
        head = f"view {name.name} would be {new.maintenance.value}{_form(new.options)}"
        return [head, *explained(catalog, compiled), *_costs(session, compiled)]
    view = catalog.expect(View, name.name, name.schema or "public")
    compiled = keeper.compiled(catalog, view)
    head = f"view {name.name} is {view.maintenance.value}{_form(view.options)}"
    batches = _batches(session, catalog, view)
    return [head, *explained(catalog, compiled), *_helpers(catalog, view), *batches]


def _batches(session: Session, catalog: Catalog, view: View) -> Iterator[str]:
    """The engine for batches of a deferred view, by size; and that of the last batch, with why."""
    if view.maintenance is Maintenance.DEFERRED:
        keeper, upkeep = session.host.views.keeper, session.host.views.deferred.of(view)
        yield keeper.tiers.explained(view, keeper.maintainer(catalog, view), session.host.position)
        if upkeep.evaluated is not None:
            yield f"last batch: {upkeep.evaluated}"


def _form(options: ViewOptions) -> str:
    words = [
        "placement local" if options.local else "",
        "join co-located" if options.colocated else "",
        "" if options.strict else "not strict",
    ]
    return "".join(f", {word}" for word in words if word)


def _helpers(catalog: Catalog, view: View) -> Iterator[str]:
    """The auxiliary views it stands on, by name."""
    for id_ in view.auxiliary_views:
        found = catalog.get(id_)
        if isinstance(found, View):
            users = len([v for v in catalog.views if id_ in v.auxiliary_views])
            yield f'kept as "{found.name}", {users} user{"" if users == 1 else "s"}'


def _costs(session: Session, compiled: Compiled) -> Iterator[str]:
    """The price: indexes and auxiliary views to be made, each table's changes, storage, time."""
    catalog = session.catalog
    wishes = required_indexes(catalog, compiled)
    for wish in wishes:
        table = catalog.table(wish.relation)
        columns = ", ".join(table.columns[slot].name for slot in wish.slots)
        yield f"index to be made on {table.name} ({columns})"
    for relation, price in prices(catalog, compiled, wishes).items():
        yield f"a new row of {catalog.table(relation).name} costs {price}"
    estimate = session.shared.estimator(catalog)
    entries, size = storage(compiled, estimate)
    yield f"storage: about {counted(entries, 'entry', 'entries')}, {counted(size, 'byte')}"
    rows = sum(int(session.shared.size_of(relation)) for relation in inputs_of(compiled.tree))
    seconds = (rows + entries) / ROWS_PER_SECOND
    yield f"build: about {seconds:.3f} s, {counted(rows, 'row')} to be read"


# -- writes ----------------------------------------------------------------------------------------


def write_lines(session: Session, node: n.Node) -> list[str]:
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
    changed = _assigned(node)
    for index in catalog.indexes_of(table.id):
        parts = {part.slot for part in index.parts} | set(index.include)
        touched = changed is None or None in parts or bool(parts & changed) or index.where
        if touched:
            lines.append(f"index: {index.name}{' unique' if index.unique else ''}")
    for view in catalog.views_over(table.id):
        comes = isinstance(node, n.Insert)
        lines.append(_view_line(session, view, table, changed, comes=comes))
    for key in table.foreign_keys:
        if key.enforced:
            lines.append(f"check at commit: foreign key {key.name}")
    return lines


def _assigned(node: n.Insert | n.Update | n.Delete) -> set[int] | None:
    """The columns an UPDATE sets; None: all of them."""
    return {one.ordinal for one in node.assignments} if isinstance(node, n.Update) else None


def _view_line(
    session: Session, view: View, table: Table, changed: set[int] | None, *, comes: bool
) -> str:
    what = "auxiliary view" if view.part else "view"
    if view.maintenance is Maintenance.DEFERRED:
        return f"{what}: {view.name}, deferred: nothing now"
    compiled = session.host.views.keeper.compiled(session.catalog, view)
    used = slots_of(compiled.tree, table.id)
    if changed is not None and not isinstance(compiled.tree, Whole) and not used & changed:
        return f"{what}: {view.name}, no column of it is set: nothing"
    price = change_price(session.catalog, compiled, table.id, comes=comes)
    return f"{what}: {view.name}, {price}"
