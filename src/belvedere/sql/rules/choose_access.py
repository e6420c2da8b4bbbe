"""Access path choice: each scan gets its cheapest access path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from belvedere.catalog.model import Column, Table, TypeName, View
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import conjunction, conjuncts, rebuild_inputs
from belvedere.sql.rules.access_paths import (
    Candidate,
    Sarg,
    candidates,
    full_cost,
    primary_key,
    remaining,
    sargs_of,
)
from belvedere.sql.rules.context import Context
from belvedere.types import BIGINT, INTEGER

LOCAL_KEY = "0 partition"
"""The first stored column of a local view."""


def choose_access(plan: n.Node, context: Context) -> n.Node:
    if isinstance(plan, n.Scan | n.State):
        return _scan(plan, context)
    return rebuild_inputs(plan, lambda one: choose_access(one, context))


def _scan(scan: n.Scan | n.State, context: Context) -> n.Node:
    table, known = context.catalog.get(scan.relation), list[Sarg]()
    if isinstance(table, View):
        partitions = _partitions(table, context)
        table = stored_rows(table, scan)
        known = _in_any_partition(table, partitions)
    if scan.filter is None or not isinstance(table, Table) or scan.access != paths.FULL:
        return scan
    best = cheapest(scan, table, context, known)
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


def _partitions(view: View, context: Context) -> int:
    """How many partitions may hold a group of a local view; 0 for other views."""
    names = [column.name for column in view.stored[:1]]
    if not view.options.local or names != [LOCAL_KEY]:
        return 0
    return max(context.catalog.table(view.inputs[0]).partitions, 1)


def _in_any_partition(table: Table, partitions: int) -> list[Sarg]:
    """What is known of a local view's first key column: a look-up goes to each partition."""
    if not partitions:
        return []
    column = primary_key(table)[0].expression
    numbers = tuple(e.Literal(number, INTEGER) for number in range(partitions))
    return [Sarg(column, "in", numbers, None)]


def cheapest(
    scan: n.Scan | n.State, table: Table, context: Context, known: Sequence[Sarg] = ()
) -> Candidate | None:
    """The best candidate, if it beats reading everything; `known` holds without a condition."""
    sargs = sargs_of(scan, table)
    if not sargs:
        return None
    found = candidates(scan, table, [*sargs, *known], context)
    found = [one for one in found if any(sarg.condition is not None for sarg in one.used)]
    best = min(found, key=lambda one: one.cost, default=None)
    if best is None or (not best.access.whole and best.cost > full_cost(scan, context)):
        return None
    return best
