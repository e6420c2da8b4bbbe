"""Access path choice: each scan gets the cheapest way to its rows."""

from __future__ import annotations

from dataclasses import replace

from belvedere.catalog.model import Column, Table, TypeName, View
from belvedere.plan import access as paths
from belvedere.plan import nodes as n
from belvedere.plan.transform import conjunction, conjuncts, rebuild_inputs
from belvedere.sql.rules.access_paths import (
    Candidate,
    candidates,
    full_cost,
    remaining,
    sargs_of,
)
from belvedere.sql.rules.context import Context
from belvedere.types import BIGINT


def choose_access(plan: n.Node, context: Context) -> n.Node:
    if isinstance(plan, n.Scan | n.State):
        return _scan(plan, context)
    return rebuild_inputs(plan, lambda one: choose_access(one, context))


def _scan(scan: n.Scan | n.State, context: Context) -> n.Node:
    table = context.catalog.get(scan.relation)
    if isinstance(table, View):
        table = stored_rows(table, scan)
    if scan.filter is None or not isinstance(table, Table) or scan.access != paths.FULL:
        return scan
    best = cheapest(scan, table, context)
    if best is None:
        return scan
    rest = conjunction(remaining(conjuncts(scan.filter), best.used))
    return replace(scan, access=best.access, residual=rest)


def stored_rows(view: View, scan: n.Scan | n.State) -> Table:
    """A view's state as a table: its key is what the state is sorted by, the amounts follow. Names
    are those of the scan, which the conditions have too."""
    stored = [column.type for column in view.stored]
    types = enumerate([*stored, *[BIGINT] * view.amounts])
    names = {slot: field.name for slot, field in zip(scan.slots, scan.fields, strict=True)}
    return Table(
        id=view.id,
        name=view.name,
        columns=tuple([Column(names.get(i, ""), TypeName.of(type_), i) for i, type_ in types]),
        primary_key=tuple(range(view.key_columns)),
    )


def cheapest(scan: n.Scan | n.State, table: Table, context: Context) -> Candidate | None:
    """The best candidate, if it beats reading everything."""
    sargs = sargs_of(scan, table)
    if not sargs:
        return None
    found = candidates(scan, table, sargs, context)
    best = min(found, key=lambda one: one.cost, default=None)
    if best is None or (not best.access.whole and best.cost > full_cost(scan, context)):
        return None
    return best
