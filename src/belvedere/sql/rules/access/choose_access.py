"""Access path choice: each scan gets its cheapest access path."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from belvedere.catalog.model import CatalogColumn, Table, TypeName, View
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import conjunction, conjuncts, rebuild_inputs
from belvedere.sql.rules.access.access_paths import (
    AccessCandidate,
    Sarg,
    collect_sargs,
    full_scan_cost,
    list_candidates,
    primary_key_columns,
    remaining_conditions,
)
from belvedere.sql.rules.access.split_disjunctions import split_disjunction
from belvedere.sql.rules.context import OptimizerContext
from belvedere.types import BIGINT, INTEGER

LOCAL_KEY = "0 partition"
"""The first stored column of a local view."""


def choose_access(plan: n.Node, context: OptimizerContext) -> n.Node:
    if isinstance(plan, n.Scan | n.State):
        return _choose_scan_access(plan, context)
    return rebuild_inputs(plan, lambda one: choose_access(one, context))


class ScannedKey(NamedTuple):
    """The table that a scan reads, or a view's state as one; `given` holds without a condition."""

    table: Table
    given: list[Sarg]


def describe_key(scan: n.Scan | n.State, context: OptimizerContext) -> ScannedKey | None:
    """None: what is scanned has no key."""
    relation = context.catalog.get(scan.relation)
    if isinstance(relation, View):
        partitions = _count_partitions(relation, context)
        table = make_state_table(relation, scan)
        return ScannedKey(table, _make_partition_sargs(table, partitions))
    return ScannedKey(relation, []) if isinstance(relation, Table) else None


def _choose_scan_access(scan: n.Scan | n.State, context: OptimizerContext) -> n.Node:
    if scan.filter is None or scan.access != paths.FULL:
        return scan
    key = describe_key(scan, context)
    if key is None:
        return scan
    table = key.table
    best = find_cheapest(scan, table, context, key.given)
    if isinstance(scan, n.Scan):
        cost = full_scan_cost(scan, context) if best is None else best.cost
        split = split_disjunction(scan, lambda one: find_cheapest(one, table, context), cost)
        if split is not None:
            return split
    if best is None:
        return scan
    rest = conjunction(remaining_conditions(conjuncts(scan.filter), best.used))
    return replace(scan, access=best.access, residual=rest)


def make_state_table(view: View, scan: n.Scan | n.State) -> Table:
    """A view's state as a table: its key is what the state is sorted by, the amounts follow. Names
    are those of the scan, which the conditions have too."""
    stored = [column.type for column in view.stored]
    types = enumerate([*stored, *[BIGINT] * view.amounts])
    names = {slot: field.name for slot, field in zip(scan.slots, scan.fields, strict=True)}
    return Table(
        id=view.id,
        name=view.name,
        columns=tuple(
            [CatalogColumn(names.get(i, ""), TypeName.from_type(type_), i) for i, type_ in types]
        ),
        primary_key=tuple(range(view.key_columns)),
    )


def _count_partitions(view: View, context: OptimizerContext) -> int:
    """How many partitions may hold a group of a local view; 0 for other views."""
    names = [column.name for column in view.stored[:1]]
    if not view.options.local or names != [LOCAL_KEY]:
        return 0
    return max(context.catalog.table(view.inputs[0]).partitions, 1)


def _make_partition_sargs(table: Table, partitions: int) -> list[Sarg]:
    """What is known of a local view's first key column: a look-up goes to each partition."""
    if not partitions:
        return []
    column = primary_key_columns(table)[0].expression
    numbers = tuple(e.Literal(number, INTEGER) for number in range(partitions))
    return [Sarg(column, "in", numbers, None)]


def find_cheapest(
    scan: n.Scan | n.State, table: Table, context: OptimizerContext, known: Sequence[Sarg] = ()
) -> AccessCandidate | None:
    """The best candidate, if it beats reading everything; `known` holds without a condition."""
    sargs = collect_sargs(scan, table)
    if not sargs:
        return None
    found = list_candidates(scan, table, [*sargs, *known], context)
    found = [one for one in found if any(sarg.condition is not None for sarg in one.used)]
    best = min(found, key=lambda one: one.cost, default=None)
    if best is None or (not best.access.full_key and best.cost > full_scan_cost(scan, context)):
        return None
    return best
