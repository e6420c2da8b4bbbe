"""The access path for a sort below a limit: rows in order, read until the limit is reached.

    SELECT * FROM events WHERE at > $1 AND shop = 7 ORDER BY at LIMIT 20

can be read by any key that gives the order: an index on (shop, at) reads 20 rows, one on (at) as
many as it takes to meet 20 of this shop, and one on (shop) has to read and sort them all. Which is
cheapest is a matter of estimates: a path is expected to read the share of its rows that the limit
is of all rows that match.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from belvedere.catalog.model import Table, View
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import conjunction, conjuncts
from belvedere.sql.rules.access.access_paths import (
    GET,
    NEXT,
    SEEK,
    AccessCandidate,
    KeyExpression,
    collect_sargs,
    find_usable_indexes,
    full_scan_cost,
    index_order_columns,
    is_covering,
    list_candidates,
    map_to_table_row,
    primary_key_columns,
    remaining_conditions,
)
from belvedere.sql.rules.access.choose_access import make_state_table
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.estimates import estimate_rows, estimate_table_rows

SORT = 0.1  # one row of a sort
DOUBT = 2.0
"""Matching rows may come late: a path that leaves conditions to check may read so many times more
than is expected."""


def order_scan_for_limit(
    scan: n.Scan, keys: tuple[e.SortKey, ...], limit: float, context: OptimizerContext
) -> n.Scan | None:
    """The scan with its rows in this order, when that is cheaper than to sort them."""
    table = context.catalog.get(scan.relation)
    if isinstance(table, View):
        return order_state_scan(scan, table, keys)
    if not isinstance(table, Table):
        return None
    wanted = [
        replace(key, expression=map_to_table_row(key.expression, scan, table)) for key in keys
    ]
    matching = estimate_rows(scan, context)
    candidates = list_candidates(scan, table, collect_sargs(scan, table), context)
    best, best_cost = None, _sorting_cost(scan, candidates, matching, context)
    for candidate, reverse in _list_ordered(scan, table, candidates, wanted, context):
        rest = remaining_conditions(conjuncts(scan.filter), candidate.used)
        cost = _reading_cost(candidate, limit / matching, doubtful=bool(rest))
        if cost < best_cost:
            access = replace(candidate.access, ordered=True, reverse=reverse)
            best = replace(scan, access=access, residual=conjunction(rest))
            best_cost = cost
    return best


def order_state_scan(scan: n.Scan, view: View, keys: tuple[e.SortKey, ...]) -> n.Scan | None:
    """The scan of a view's state in this order, if the state is sorted by it."""
    table = make_state_table(view, scan)
    wanted = [
        replace(key, expression=map_to_table_row(key.expression, scan, table)) for key in keys
    ]
    orders = [*view.orders, *[(False, False)] * (view.key_columns - len(view.orders))]
    columns = tuple(
        KeyExpression(column.expression, descending, nulls_first, False)
        for column, (descending, nulls_first) in zip(
            primary_key_columns(table), orders, strict=True
        )
    )
    reverse = find_direction(columns, scan.access, wanted)
    if reverse is None or not has_single_values(scan.access):
        return None
    return replace(scan, access=replace(scan.access, ordered=True, reverse=reverse))


def _sorting_cost(
    scan: n.Scan, candidates: list[AccessCandidate], matching: float, context: OptimizerContext
) -> float:
    """What the access that was chosen costs, and the sort of what it finds."""
    for candidate in candidates:
        if candidate.access == scan.access:
            return candidate.cost + matching * SORT
    return full_scan_cost(scan, context) + matching * SORT


def _reading_cost(candidate: AccessCandidate, share: float, *, doubtful: bool) -> float:
    access = candidate.access
    expected = candidate.rows * min(1.0, share * DOUBT if doubtful else share)
    by_index = access.index is not None and not access.covering
    return SEEK + max(expected, 1.0) * (NEXT + GET if by_index else NEXT)


def _list_ordered(
    scan: n.Scan,
    table: Table,
    candidates: list[AccessCandidate],
    wanted: list[e.SortKey],
    context: OptimizerContext,
) -> Iterator[tuple[AccessCandidate, bool]]:
    """The candidates that give the order, and whether they are read in reverse."""
    for candidate in [*candidates, *_list_unnarrowed(scan, table, context)]:
        columns = access_key_columns(candidate.access, table, context)
        if columns is None or not has_single_values(candidate.access):
            continue
        reverse = find_direction(columns, candidate.access, wanted)
        if reverse is not None:
            yield candidate, reverse


def _list_unnarrowed(
    scan: n.Scan, table: Table, context: OptimizerContext
) -> list[AccessCandidate]:
    """The primary key and the usable indexes, each from end to end."""
    rows = estimate_table_rows(scan.relation, context)
    found = [AccessCandidate(paths.FULL, (), rows, rows * NEXT)]
    for index in find_usable_indexes(scan, table, context):
        # A partial index has little more than the rows that are needed.
        held = rows if index.where is None else min(rows, estimate_rows(scan, context) * DOUBT)
        access = paths.Access(index.id, index.name, covering=is_covering(index, table, scan))
        found.append(AccessCandidate(access, (), held, held * (NEXT + GET)))
    return found


def access_key_columns(
    access: paths.Access, table: Table, context: OptimizerContext
) -> tuple[KeyExpression, ...] | None:
    """The columns of the key that an access follows."""
    if access.index is None:
        return primary_key_columns(table)
    for index in context.catalog.table_indexes(table.id):
        if index.id == access.index:
            return index_order_columns(table, index, context)
    return None


def has_single_values(access: paths.Access) -> bool:
    return all(isinstance(part, paths.EqualityPart | paths.IsNullPart) for part in access.parts)


def find_direction(
    columns: tuple[KeyExpression, ...], access: paths.Access, wanted: list[e.SortKey]
) -> bool | None:
    """False: the order of the key; True: its reverse; None: neither.

    Columns of the access's parts have one value each, so they order nothing and may be left out. A
    column with a range has no NULLs there.
    """
    fixed = len(access.parts)
    constant = [column.expression for column in columns[:fixed]]
    rest = list(columns[fixed:])
    if rest and access.range is not None:
        rest[0] = rest[0]._replace(not_null=True)
    found: bool | None = None
    for key in wanted:
        if key.expression in constant:
            continue
        if not rest or rest[0].expression != key.expression:
            return None
        column = rest.pop(0)
        constant.append(column.expression)
        reverse = column.descending != key.descending
        nulls_first = column.nulls_first != reverse
        if not column.not_null and nulls_first != key.nulls_first:
            return None
        if found is not None and found != reverse:
            return None
        found = reverse
    return bool(found)
