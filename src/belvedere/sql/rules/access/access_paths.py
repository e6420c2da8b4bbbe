"""The access paths that a scan can take, the conditions each leaves to check, and its cost.

A condition helps when it compares a key column (or the expression of an index) with something that
does not depend on the scanned row. `list_candidates` walks the primary key and every usable index
from the left: equalities as long as they last, then one range.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import NamedTuple

from belvedere.catalog.model import Index, ObjectState, Table
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import columns_of, conjunction, conjuncts, has_subplan, map_columns
from belvedere.sql.bind.expressions.stored_expressions import live_columns
from belvedere.sql.rules.access.implication import implies
from belvedere.sql.rules.access.key_values import fit_key_value, is_comparable
from belvedere.sql.rules.access.like_patterns import prefix_range
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.estimates import (
    estimate_column_distinct,
    estimate_rows,
    estimate_selectivity,
    estimate_table_rows,
)
from belvedere.sql.rules.fold_constants import fold_expression
from belvedere.sql.rules.push_predicates import is_volatile

GET = 1.0  # one row by its key
SEEK = 1.2  # finding the start of a range
NEXT = 0.1  # one more row of a range


class Sarg(NamedTuple):
    """A condition `side <comparison> value`; `side` is over the table row, `value` over none of it.

    `comparison` is '=', '<', '<=', '>', '>=', 'in', 'any', 'null', 'prefix' or 'where'.
    """

    side: e.Expression
    comparison: str
    value: e.Expression | tuple[e.Expression, ...] | paths.Range | None
    condition: e.Expression | None  # the conjunct it stands for; None for a join key
    exact: bool = True  # whether the access implies the condition


class KeyExpression(NamedTuple):
    """A column of a key: what it holds (over the table row), and its order."""

    expression: e.Expression
    descending: bool
    nulls_first: bool
    not_null: bool


@dataclass(frozen=True, slots=True)
class AccessCandidate:
    access: paths.Access
    used: tuple[Sarg, ...]
    rows: float
    cost: float


# -- conditions ------------------------------------------------------------------------------------

_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def collect_sargs(scan: n.Scan | n.State, table: Table) -> list[Sarg]:
    """The conditions of a scan that some key may serve."""
    found: list[Sarg] = []
    for one in conjuncts(scan.filter):
        if not has_subplan(one) and not is_volatile(one):
            found += list_condition_sargs(one, scan, table)
    return found


def list_condition_sargs(
    condition: e.Expression, scan: n.Scan | n.State, table: Table
) -> list[Sarg]:
    """What one condition of a scan says about keys."""
    match condition:
        case e.Call() if condition.function.name in _FLIPPED:
            left, right = condition.arguments
            name = condition.function.name
            pairs = ((left, name, right), (right, _FLIPPED[name], left))
            return [
                Sarg(map_to_table_row(side, scan, table), sign, fitted, condition)
                for side, sign, value in pairs
                if columns_of(side) and not columns_of(value)
                if (fitted := _fit_compared_value(side, sign, value)) is not None
            ]
        case e.InList() if not condition.negated:
            side = condition.operand
            items = [fit_key_value(side, x) for x in condition.items if not columns_of(x)]
            fitting = tuple([item for item in items if item is not None])
            if not columns_of(side) or len(fitting) < len(condition.items):
                return []
            return [Sarg(map_to_table_row(side, scan, table), "in", fitting, condition)]
        case e.Quantified() if _is_equal_any(condition):
            side, element = condition.operand, condition.array.type.element
            if not columns_of(side) or columns_of(condition.array) or element is None:
                return []
            if not is_comparable(side, e.Literal(None, element)):
                return []
            return [Sarg(map_to_table_row(side, scan, table), "any", condition.array, condition)]
        case e.Test(truth=e.Truth.NULL, negated=False) if columns_of(condition.operand):
            side = map_to_table_row(condition.operand, scan, table)
            return [Sarg(side, "null", None, condition)]
        case _:
            return _make_like_sargs(condition, scan, table)


def _fit_compared_value(side: e.Expression, sign: str, value: e.Expression) -> e.Expression | None:
    if sign == "=":
        return fit_key_value(side, value)
    return value if is_comparable(side, value) else None


def _is_equal_any(condition: e.Quantified) -> bool:
    return condition.quantifier is e.Quantifier.ANY and condition.operator.name == "="


def _make_like_sargs(condition: e.Expression, scan: n.Scan | n.State, table: Table) -> list[Sarg]:
    found = prefix_range(condition)
    if found is None:
        return []
    side, bounds = found
    return [Sarg(map_to_table_row(side, scan, table), "prefix", bounds, condition, exact=False)]


def map_to_table_row(
    expression: e.Expression, scan: n.Scan | n.State, table: Table
) -> e.Expression:
    """An expression over the scanned row as one over the table's full row."""
    ordinals = {column.slot: i for i, column in enumerate(live_columns(table))}
    return map_columns(
        expression,
        lambda one: e.Column(ordinals[scan.slots[one.index]], one.type, one.name),
    )


# -- keys ------------------------------------------------------------------------------------------


def primary_key_columns(table: Table) -> tuple[KeyExpression, ...]:
    places = {column.slot: i for i, column in enumerate(live_columns(table))}
    columns = {column.slot: column for column in table.columns}
    return tuple(
        [
            KeyExpression(
                e.Column(places[slot], columns[slot].type, columns[slot].name), False, False, True
            )
            for slot in table.primary_key
        ]
    )


def index_key_columns(
    table: Table, index: Index, context: OptimizerContext
) -> tuple[KeyExpression, ...]:
    columns = {column.slot: column for column in table.columns}
    found = []
    for part in index.parts:
        # Folded, because the conditions that it is compared with are folded too.
        expression = fold_expression(context.texts.bind_key_part(context.catalog, table, part))
        first = part.descending if part.nulls_first is None else part.nulls_first
        not_null = part.slot is not None and columns[part.slot].not_null
        found.append(KeyExpression(expression, part.descending, first, not_null))
    return tuple(found)


def index_order_columns(
    table: Table, index: Index, context: OptimizerContext
) -> tuple[KeyExpression, ...]:
    """The columns that entries of an index are sorted by: the primary key comes after its own,
    except in a unique index, whose entries have only those."""
    columns = index_key_columns(table, index, context)
    if index.unique:
        return columns
    known = {column.expression for column in columns}
    more = itertools.takewhile(
        lambda column: column.expression not in known, primary_key_columns(table)
    )
    return (*columns, *more)


def find_usable_indexes(
    scan: n.Scan | n.State, table: Table, context: OptimizerContext
) -> list[Index]:
    """Indexes that are built and have every row that the scan may need."""
    found = []
    given: set[e.Expression] | None = None
    for index in context.catalog.table_indexes(table.id):
        if index.state is not ObjectState.READY:
            continue
        if index.where is not None:
            if given is None:
                given = {map_to_table_row(one, scan, table) for one in conjuncts(scan.filter)}
            wanted = _bind_index_predicate(index, table, context)
            if not all(one in given or implies(given, one) for one in wanted):
                continue
        found.append(index)
    return found


def _bind_index_predicate(
    index: Index, table: Table, context: OptimizerContext
) -> list[e.Expression]:
    """What holds for the rows of a partial index."""
    predicate = context.texts.bind_predicate(context.catalog, table, index)
    return [] if predicate is None else conjuncts(fold_expression(predicate))


def is_covering(index: Index, table: Table, scan: n.Scan | n.State) -> bool:
    """Whether the index alone has every column that the scan gives."""
    held = {part.slot for part in index.parts} | set(index.include) | set(table.primary_key)
    return held.issuperset(scan.slots)


# -- candidates ------------------------------------------------------------------------------------


def list_candidates(
    scan: n.Scan | n.State, table: Table, sargs: list[Sarg], context: OptimizerContext
) -> list[AccessCandidate]:
    """Every access path by the primary key or an index that some condition narrows."""
    found = []
    key = primary_key_columns(table)
    made = _match_key(key, sargs, None, len(key), scan, table, context)
    if made is not None:
        found.append(made)
    for index in find_usable_indexes(scan, table, context):
        parts = index_order_columns(table, index, context)
        whole = len(parts) if index.unique else None
        made = _match_key(parts, sargs, index, whole, scan, table, context)
        if made is not None:
            found.append(made)
    return found


def _match_key(
    key: tuple[KeyExpression, ...],
    sargs: list[Sarg],
    index: Index | None,
    whole: int | None,
    scan: n.Scan | n.State,
    table: Table,
    context: OptimizerContext,
) -> AccessCandidate | None:
    parts: list[paths.Part] = []
    used: list[Sarg] = []
    for column in key:
        sarg = _find_equality(column, sargs)
        if sarg is None:
            break
        parts.append(_make_key_part(sarg))
        used.append(sarg)
    bounds = None
    if len(parts) < len(key):
        bounds, more = _find_range(key[len(parts)], sargs)
        used += more
    if not parts and bounds is None:
        return None
    if index is not None and index.where is not None:
        used += _find_implied(index, scan, table, context)
    full = whole is not None and len(parts) == whole
    if full and index is not None:  # NULLs may repeat in a unique index
        full = not any(isinstance(part, paths.IsNullPart) for part in parts)
    covering = index is not None and is_covering(index, table, scan)
    access = paths.Access(
        index=None if index is None else index.id,
        index_name="" if index is None else index.name,
        parts=tuple(parts),
        range=bounds,
        full_key=full,
        covering=covering,
    )
    rows = _estimate_access_rows(access, used, scan, context)
    return AccessCandidate(access, tuple(used), rows, _estimate_access_cost(access, rows))


def _find_implied(
    index: Index, scan: n.Scan | n.State, table: Table, context: OptimizerContext
) -> list[Sarg]:
    """The conditions that the predicate of a partial index guarantees already."""
    predicate = set(_bind_index_predicate(index, table, context))
    return [
        Sarg(map_to_table_row(one, scan, table), "where", None, one)
        for one in conjuncts(scan.filter)
        if map_to_table_row(one, scan, table) in predicate
    ]


def _find_equality(column: KeyExpression, sargs: list[Sarg]) -> Sarg | None:
    rank = {"=": 0, "in": 1, "any": 2, "null": 3}
    found = [one for one in sargs if one.comparison in rank and one.side == column.expression]
    return min(found, key=lambda one: rank[one.comparison], default=None)


def _make_key_part(sarg: Sarg) -> paths.Part:
    if sarg.comparison == "null":
        return paths.IsNullPart()
    if sarg.comparison == "in":
        assert isinstance(sarg.value, tuple)
        return paths.InListPart(sarg.value)
    assert sarg.value is not None
    assert not isinstance(sarg.value, tuple | paths.Range)
    return (
        paths.AnyElementPart(sarg.value)
        if sarg.comparison == "any"
        else paths.EqualityPart(sarg.value)
    )


def _find_range(column: KeyExpression, sargs: list[Sarg]) -> tuple[paths.Range | None, list[Sarg]]:
    low: paths.Bound | None = None
    high: paths.Bound | None = None
    pattern: Sarg | None = None
    used: list[Sarg] = []
    for one in sargs:
        if one.side != column.expression:
            continue
        if isinstance(one.value, paths.Range):
            if one.value.pattern is not None:
                pattern = pattern or one
            elif low is None and high is None:
                low, high = one.value.low, one.value.high
                used.append(one)
            continue
        if one.value is None or isinstance(one.value, tuple):
            continue
        if one.comparison in (">", ">=") and low is None:
            low = paths.Bound(one.value, one.comparison == ">=")
            used.append(one)
        elif one.comparison in ("<", "<=") and high is None:
            high = paths.Bound(one.value, one.comparison == "<=")
            used.append(one)
    if low is not None or high is not None:
        return paths.Range(low, high), used
    if pattern is None:
        return None, []
    assert isinstance(pattern.value, paths.Range)
    return pattern.value, [pattern]


def _estimate_access_rows(
    access: paths.Access, used: list[Sarg], scan: n.Scan | n.State, context: OptimizerContext
) -> float:
    if access.kind is paths.AccessKind.KEY:
        return 1.0
    if access.kind is paths.AccessKind.KEYS:
        return max(1.0, _count_combinations(access))
    total = estimate_table_rows(scan.relation, context)
    conditions = [one.condition for one in used if one.condition is not None]
    share = estimate_selectivity(conjunction(conditions), scan, context)
    for one in used:
        if one.condition is None:  # a join key
            share /= _estimate_sarg_distinct(one, scan, context)
    return max(1.0, total * share)


def _estimate_sarg_distinct(sarg: Sarg, scan: n.Scan | n.State, context: OptimizerContext) -> float:
    table = context.catalog.get(scan.relation)
    if isinstance(table, Table) and isinstance(sarg.side, e.Column):
        slot = live_columns(table)[sarg.side.index].slot
        return max(1.0, estimate_column_distinct(scan.relation, slot, context))
    return max(1.0, estimate_rows(scan, context) * 0.1)


def _count_combinations(access: paths.Access) -> float:
    count = 1.0
    for part in access.parts:
        if isinstance(part, paths.InListPart):
            count *= len(part.values)
        elif isinstance(part, paths.AnyElementPart):
            count *= 10
    return count


def _estimate_access_cost(access: paths.Access, rows: float) -> float:
    seeks = _count_combinations(access)
    if access.index is None:
        return seeks * GET if access.full_key else seeks * SEEK + rows * NEXT
    if access.covering:
        return seeks * SEEK + rows * NEXT
    return seeks * SEEK + rows * (NEXT + GET)


def full_scan_cost(scan: n.Scan | n.State, context: OptimizerContext) -> float:
    return SEEK + estimate_table_rows(scan.relation, context) * NEXT


def remaining_conditions(
    conditions: list[e.Expression], used: tuple[Sarg, ...]
) -> list[e.Expression]:
    """The conditions that an access does not imply."""
    implied = {id(one.condition) for one in used if one.exact}
    return [one for one in conditions if id(one) not in implied]
