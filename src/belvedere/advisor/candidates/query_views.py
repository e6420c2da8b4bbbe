"""Views for one block of a query: its join, in the order in which the query asks for it; the join
with the query's constant conditions; and its groups.

The order of a join view: columns that the query sets equal to a value, then those it sorts by, then
those it bounds. So the rows wanted lie side by side, sorted, and LIMIT ends the read early.

An aggregate view has the columns of the conditions that depend on a parameter among its groups; the
query adds up its groups. AVG is kept as SUM and COUNT, so that it can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from belvedere.advisor.candidates.candidate import Candidate, CandidateKind
from belvedere.advisor.candidates.definition_text import ConditionWriter, ViewLeaves
from belvedere.advisor.candidates.view_shape import (
    JoinShape,
    list_expression_columns,
    list_primary_keys,
    make_writer,
    name_view,
)
from belvedere.advisor.workload.bound_workload import WorkloadQuery
from belvedere.advisor.workload.join_block import JoinBlock, LeafColumn, is_row_independent
from belvedere.advisor.workload.sql_names import write_name
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.errors import Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform

_RANGES = frozenset(("<", "<=", ">", ">=", "~~"))
_ROLLED_UP = frozenset(("count", "sum", "min", "max", "avg"))


@dataclass(frozen=True, slots=True)
class BlockNeeds:
    """What a query wants of a block: columns it fixes, sorts by and bounds, and all it reads."""

    leaves: ViewLeaves
    fixed: tuple[LeafColumn, ...]
    sorted: tuple[LeafColumn, ...]
    directions: tuple[tuple[LeafColumn, e.SortKey], ...]
    bounded: tuple[LeafColumn, ...]
    read: tuple[LeafColumn, ...]
    static: tuple[e.Expression, ...]

    @property
    def orders(self) -> list[tuple[LeafColumn, ...]]:
        """The orders that would serve the query: sorted, so that LIMIT ends the read, or by the
        bounds, so that only rows within them are read."""
        by_sort = tuple(dict.fromkeys((*self.fixed, *self.sorted, *self.bounded)))
        by_bound = tuple(dict.fromkeys((*self.fixed, *self.bounded, *self.sorted)))
        return [by_sort] if by_sort == by_bound else [by_sort, by_bound]


def find_block_needs(catalog: Catalog, block: JoinBlock) -> BlockNeeds | None:
    """None: a leaf of the block is no table."""
    relations = [leaf.relation for leaf in block.leaves]
    tables = [one for one in relations if one is not None and isinstance(catalog.get(one), Table)]
    if len(tables) != len(relations):
        return None
    fixed, bounded, static, open_ = [], [], [], []
    for condition in block.other_conditions:
        if _is_static(condition):
            static.append(condition)
            continue
        open_.append(condition)
        column = block.find_fixed_column(condition)
        if column is not None:
            fixed.append(column)
        elif (ranged := _find_bounded_column(block, condition)) is not None:
            bounded.append(ranged)
    directions = tuple(_find_sorted_columns(block))
    open_ += block.probes
    probed = [
        block.find_leaf_column(one.index) for one in block.probes if isinstance(one, e.Column)
    ]
    fixed += [column for column in probed if column is not None]
    return BlockNeeds(
        ViewLeaves(catalog, tuple(tables)),
        tuple(dict.fromkeys(fixed)),
        tuple(column for column, _ in directions),
        directions,
        tuple(dict.fromkeys(bounded)),
        tuple(list_expression_columns(block, (*block.columns, *open_))),
        tuple(static),
    )


def _is_static(condition: e.Expression) -> bool:
    """Whether the condition depends on its own block only, so that a view may contain it."""
    if transform.has_subplan(condition) or transform.has_outer_column(condition):
        return False
    return bool(transform.columns_of(condition)) and not _has_parameter(condition)


def _has_parameter(expression: e.Expression) -> bool:
    return isinstance(expression, e.Parameter) or any(
        map(_has_parameter, transform.operands(expression))
    )


def _find_bounded_column(block: JoinBlock, condition: e.Expression) -> LeafColumn | None:
    match condition:
        case e.Call(function, (left, right), _) if function.name in _RANGES:
            for mine, other in ((left, right), (right, left)):
                if isinstance(mine, e.Column) and is_row_independent(other):
                    return block.find_leaf_column(mine.index)
        case e.InList(operand=e.Column() as mine) | e.Quantified(operand=e.Column() as mine):
            return block.find_leaf_column(mine.index)
    return None


def _find_sorted_columns(block: JoinBlock) -> Iterator[tuple[LeafColumn, e.SortKey]]:
    """The columns that the query sorts the block's rows by, as far as they are plain columns."""
    for node in block.above:
        if isinstance(node, n.Sort | n.TopN):
            for key in node.keys:
                column = _find_output_column(block, key.expression)
                if column is None:
                    return
                yield column, key
            return
        if not isinstance(node, n.Limit):
            return


def _find_output_column(block: JoinBlock, expression: e.Expression) -> LeafColumn | None:
    if not isinstance(expression, e.Column):
        return None
    made = block.columns[expression.index]
    return block.find_leaf_column(made.index) if isinstance(made, e.Column) else None


# -- candidates ------------------------------------------------------------------------------------


def list_query_views(catalog: Catalog, query: WorkloadQuery) -> list[Candidate]:
    """The views for each block of the query."""
    found: list[Candidate] = []
    for block in query.blocks:
        needs = find_block_needs(catalog, block)
        if needs is None:
            continue
        for shape, kind in list_join_shapes(block, needs):
            if len(block.leaves) > 1 or kind is CandidateKind.FILTERED:
                found.append(shape.make_candidate(kind, [query.name]))
        found += _list_aggregate_views(query, block, needs)
    return found


def list_join_shapes(
    block: JoinBlock, needs: BlockNeeds
) -> Iterator[tuple[JoinShape, CandidateKind]]:
    equalities = tuple(block.equalities)
    if len(equalities) < len(block.leaves) - 1:
        return  # a product of tables
    static = list_expression_columns(block, needs.static)
    keys = list_primary_keys(needs.leaves)
    others = tuple(dict.fromkeys((*needs.read, *static, *keys)))
    for key in needs.orders:
        order = find_mixed_order(needs, key)
        yield JoinShape(needs.leaves, equalities, (), key, others, order), CandidateKind.JOIN
    if needs.static:
        try:
            writer = make_writer(needs.leaves, block)
            filters = tuple(writer.operand(one) for one in needs.static)
        except Unsupported:
            return
        others = tuple(dict.fromkeys((*needs.read, *keys)))
        for key in needs.orders:
            order = find_mixed_order(needs, key)
            shape = JoinShape(needs.leaves, equalities, filters, key, others, order)
            yield shape, CandidateKind.FILTERED


def find_mixed_order(
    needs: BlockNeeds, key: tuple[LeafColumn, ...]
) -> tuple[tuple[LeafColumn, e.SortKey | None], ...]:
    """The order in which a view has to be stored for a query that sorts up and down; empty where
    the ascending order, read from either end, will do."""
    given = dict(needs.directions)
    kinds = {(one.descending, one.nulls_first) for one in given.values()}
    if not kinds or kinds in ({(False, False)}, {(True, True)}):
        return ()
    last = max(key.index(column) for column in given)
    return tuple((column, given.get(column)) for column in key[: last + 1])


def _list_aggregate_views(
    query: WorkloadQuery, block: JoinBlock, needs: BlockNeeds
) -> Iterator[Candidate]:
    node = block.above[0] if block.above else None
    if not isinstance(node, n.Aggregate | n.Distinct):
        return
    if len(block.equalities) < len(block.leaves) - 1:
        return
    if isinstance(node, n.Aggregate):
        if node.grouping_sets is not None:
            return
        groups, calls = node.groups, node.aggregates
    else:
        groups = tuple(e.Column(i, f.type, f.name) for i, f in enumerate(node.input.fields))
        calls = ()
    variants = [True, False] if needs.static else [True]
    for with_static in variants:
        try:
            yield _make_aggregate_view(query, block, needs, groups, calls, with_static)
        except Unsupported:
            continue


def _make_aggregate_view(
    query: WorkloadQuery,
    block: JoinBlock,
    needs: BlockNeeds,
    groups: tuple[e.Expression, ...],
    calls: tuple[e.AggregateCall, ...],
    with_static: bool,
) -> Candidate:
    leaves, writer = needs.leaves, make_writer(needs.leaves, block)
    key = tuple(dict.fromkeys((*needs.fixed, *needs.bounded)))
    if not with_static:
        key += tuple(c for c in list_expression_columns(block, needs.static) if c not in key)
    items = {leaves.write_column(column): leaves.name_column(column) for column in key}
    for number, group in enumerate(groups):
        made = _substitute(block, group)
        column = block.find_leaf_column(made.index) if isinstance(made, e.Column) else None
        name = leaves.name_column(column) if column is not None else f"group_{number + 1}"
        items.setdefault(writer.expression(made), name)
    written = list(items)
    selected = [_write_item(text, name) for text, name in _make_names_unique(items).items()]
    for text in _write_calls(block, calls, writer):
        selected.append(text)
    filters = [writer.operand(one) for one in needs.static] if with_static else []
    where = JoinShape(leaves, tuple(block.equalities), tuple(filters), (), ()).write_where()
    grouped = f" GROUP BY {', '.join(written)}" if written else ""
    definition = f"SELECT {', '.join(selected)}\n  FROM {leaves.write_from()}{where}{grouped}"
    names = [leaves.name_column(column) for column in key]
    return Candidate(
        name_view(leaves, [*names, "totals"], definition),
        CandidateKind.AGGREGATE,
        frozenset(leaves.relations),
        definition,
        key=tuple(names),
        queries=frozenset((query.name,)),
    )


def _substitute(block: JoinBlock, expression: e.Expression) -> e.Expression:
    return transform.map_columns(expression, lambda column: block.columns[column.index])


def _make_names_unique(items: dict[str, str]) -> dict[str, str]:
    taken = set[str]()
    found: dict[str, str] = {}
    for text, name in items.items():
        while name in taken:
            name += "_"
        taken.add(name)
        found[text] = name
    return found


def _write_item(text: str, name: str) -> str:
    written = write_name(name)
    return text if text.split(".")[-1] == written else f"{text} AS {written}"


def _write_calls(
    block: JoinBlock, calls: tuple[e.AggregateCall, ...], writer: ConditionWriter
) -> list[str]:
    """The aggregates that a view keeps for these calls: with them the calls of any union of its
    groups can be computed."""
    texts = dict[str, None]()
    for call in calls:
        name = call.function.name
        if name not in _ROLLED_UP and not call.distinct:
            raise Unsupported(f"aggregate {name}")
        moved = _move_call(block, call)
        if name == "avg" and not call.distinct:
            argument = writer.expression(moved.arguments[0])
            kept = (
                "" if moved.filter is None else f" FILTER (WHERE {writer.expression(moved.filter)})"
            )
            texts[f"sum({argument}){kept}"] = None
            texts[f"count({argument}){kept}"] = None
        else:
            texts[writer.aggregate_call(moved)] = None
    texts["count(*)"] = None
    return [f"{text} AS amount_{number}" for number, text in enumerate(texts, 1)]


def _move_call(block: JoinBlock, call: e.AggregateCall) -> e.AggregateCall:
    return replace(
        call,
        arguments=tuple(_substitute(block, one) for one in call.arguments),
        filter=None if call.filter is None else _substitute(block, call.filter),
    )
