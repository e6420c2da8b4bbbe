"""The compiler of view definitions: a bound plan to how it is maintained and how it is read.

A definition is cut in two. Below, a delta tree (`views.delta.delta_tree`) gives the rows that each
change inserts and deletes. They are added to linear state: rows with a multiplicity, or groups with
the amounts of linear aggregates (`views.delta.linear_aggregates`). Above, the *reading* plan turns
the state back into the view's rows: aggregate values, expressions over them, HAVING.

    SELECT city, count(*) AS n FROM people WHERE age > 17 GROUP BY city HAVING count(*) > 1

    tree      filter age > 17 over changes of people
    state     city | rows, count
    reading   filter n > 1 over (city, value of count)

What has no delta is refused with the construct named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.view_options import ViewForm
from belvedere.errors import Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field, Fields
from belvedere.plan.functions.core.function import Function, Volatility
from belvedere.plan.functions.datetime.session_zone import depends_on_zone
from belvedere.plan.functions.registry import resolve
from belvedere.plan.plan_items import walk_plan_items
from belvedere.types import BOOLEAN, JSON, TEXT, Kind, SqlType
from belvedere.views.compile import colocated_layout, partitioned_layout
from belvedere.views.compile.auxiliary_views import (
    Auxiliary,
    AuxiliaryRows,
    build_auxiliary_rows_tree,
    find_required_auxiliaries,
)
from belvedere.views.compile.distinct_rows import has_distinct_rows
from belvedere.views.delta.delta_tree import DeltaTree, FullRecompute
from belvedere.views.delta.linear_aggregates import (
    AMOUNT_TYPE,
    AggregateGrouping,
    LinearAggregate,
    build_final_value_expression,
    build_linear_aggregate,
)
from belvedere.views.delta.linear_core import unsupported_construct_error
from belvedere.views.delta.normalize import normalize_plan
from belvedere.views.delta.plan_delta_tree import build_delta_tree

REMOTE = ViewForm()


@dataclass(frozen=True)
class MaintenancePlan:
    """A compiled view. `tree` gives the rows that are added to `group`, or to the bag of stored
    rows; `build_read_plan` has one Scan leaf, of the view itself. `key_order` says how the first
    stored columns are ordered."""

    tree: DeltaTree
    group: AggregateGrouping | None
    stored: Fields
    amounts: int
    build_read_plan: Callable[[int], n.Node]
    key_order: tuple[e.SortKey, ...] = ()
    auxiliary_definition: n.Node | None = None  # of an auxiliary view: the plan of its rows
    build_narrowed_read_plan: Callable[[int, e.Expression], n.Node] | None = None
    """`build_read_plan`, restricted to the state that a condition on the view's rows can need; None
    where that saves nothing."""
    build_counted_read_plan: Callable[[int], n.Node] | None = None
    """`build_read_plan` with each row as often as the state says, for who checks it; None where
    that is the same."""

    def build_verification_plan(self, view: int) -> n.Node:
        return (self.build_counted_read_plan or self.build_read_plan)(view)

    @cached_property
    def required_auxiliaries(self) -> tuple[Auxiliary, ...]:
        """The auxiliary views that its maintenance requires."""
        return find_required_auxiliaries(self.tree)

    @property
    def key_column_count(self) -> int:
        return len(self.stored)

    @property
    def stored_orders(self) -> tuple[tuple[bool, bool], ...]:
        """(descending, nulls first) of the first stored columns, as the catalog notes it."""
        return tuple((key.descending, key.nulls_first) for key in self.key_order)


def compile_view(
    plan: n.Node, form: ViewForm = REMOTE, catalog: Catalog | None = None, *, on_view: bool = False
) -> MaintenancePlan:
    """How to maintain a view of a bound, unoptimized plan. Unsupported names what cannot be
    maintained. A local form takes partitions from the catalog, unless the definition reads a view
    (`on_view`)."""
    if form.strict:
        return _compile_with_delta_tree(plan, form, catalog, on_view=on_view)
    try:
        return _compile_with_delta_tree(plan, form, catalog, on_view=on_view)
    except Unsupported:
        return _compile_full_recompute(plan)


def _compile_full_recompute(plan: n.Node) -> MaintenancePlan:
    """A view that is recomputed in full whenever one of its tables changes."""
    items = list(walk_plan_items(plan))
    _refuse_sequences_and_parameters(items)
    _require_key_encodable(plan.fields)
    scans = [item.relation for item in items if isinstance(item, n.Scan)]
    tree = FullRecompute(plan, tuple(dict.fromkeys(scans)))
    return MaintenancePlan(tree, None, plan.fields, 1, _make_bag_read_plan_builder(plan.fields))


def _compile_with_delta_tree(
    plan: n.Node, form: ViewForm, catalog: Catalog | None, *, on_view: bool
) -> MaintenancePlan:
    require_deterministic(plan)
    partitions = catalog if form.local and not on_view else None
    plan = normalize_plan(plan)
    above: list[n.Filter | n.Project] = []
    node = plan
    while isinstance(node, n.Filter | n.Project | n.Sort):
        if not isinstance(node, n.Sort):
            above.append(node)
        node = node.input
    plain = not any(map(transform.has_subplan, _list_own_expressions(above)))
    if isinstance(node, n.Aggregate) and node.grouping_sets is None and plain:
        keeps = tuple(build_linear_aggregate(call) for call in node.aggregates)
        if None not in keeps and not form.colocated and not form.is_index:
            known = tuple(k for k in keeps if k is not None)
            return _compile_linear_aggregate(node, known, above, partitions)
    if form.colocated:
        return _compile_colocated_join(plan)
    return _compile_bag_of_rows(plan, partitions, catalog)


def compile_auxiliary(auxiliary: Auxiliary) -> MaintenancePlan:
    """How to maintain an auxiliary view."""
    if isinstance(auxiliary, AuxiliaryRows):
        tree, stored = build_auxiliary_rows_tree(auxiliary)
        _require_key_encodable(stored)
        return _compile_auxiliary_rows(auxiliary, tree, stored)
    group, fields = auxiliary.aggregate_grouping, auxiliary.fields
    amounts = 1 + sum(keep.width for keep in group.linear_aggregates)
    _require_key_encodable(fields)
    values = tuple(Field(call.function.name, call.type) for call in group.calls)
    plan = n.Aggregate(auxiliary.tree.plan, group.groups, group.calls, fields + values)

    def build_read_plan(view: int) -> n.Node:
        state = _make_state_scan(view, stored=fields, amounts=amounts)
        return _build_aggregate_projection(
            state if fields else _build_row_or_zeros_plan(state, amounts),
            plan,
            group.linear_aggregates,
        )

    return MaintenancePlan(
        auxiliary.tree, group, fields, amounts, build_read_plan, auxiliary_definition=plan
    )


def _compile_auxiliary_rows(
    kept: AuxiliaryRows, tree: DeltaTree, stored: Fields
) -> MaintenancePlan:
    """Its reading leaves out the keys and the rows' representation."""
    first, fields = len(kept.keys), kept.tree.plan.fields
    columns = tuple(e.Column(first + i, f.type, f.name) for i, f in enumerate(fields))
    whole = _make_bag_read_plan_builder(stored)

    def build_read_plan(view: int) -> n.Node:
        return n.Project(whole(view), columns, fields)

    return MaintenancePlan(tree, None, stored, 1, build_read_plan, kept.keys, kept.tree.plan)


def _list_own_expressions(nodes: list[n.Filter | n.Project]) -> list[e.Expression]:
    return [one for node in nodes for one in transform.own_expressions(node)]


def _compile_bag_of_rows(
    plan: n.Node, partitions: Catalog | None, catalog: Catalog | None
) -> MaintenancePlan:
    """Any rows, each with its multiplicity; with `partitions`, its multiplicity in each. Rows of
    which none can be there twice are read as they are stored."""
    stored = plan.fields
    if partitions is None and any(field.type.kind is Kind.JSON for field in stored):
        return _compile_json_bag(plan)
    _require_key_encodable(stored)
    if partitions is None:
        order, counted = _find_leading_order(plan), _make_bag_read_plan_builder(stored)
        read = counted
        if catalog is not None and has_distinct_rows(plan, catalog):
            read = _make_bag_read_plan_builder(stored, distinct=True)
        return MaintenancePlan(
            build_delta_tree(plan),
            None,
            stored,
            1,
            read,
            order,
            build_counted_read_plan=counted,
        )
    tree = partitioned_layout.add_partition_column(partitions, build_delta_tree(plan))
    whole = _make_bag_read_plan_builder(tree.plan.fields)
    columns = tuple(e.Column(1 + i, f.type, f.name) for i, f in enumerate(stored))

    def build_read_plan(view: int) -> n.Node:
        return n.Project(whole(view), columns, stored)

    return MaintenancePlan(tree, None, tree.plan.fields, 1, build_read_plan)


def _find_leading_order(plan: n.Node) -> tuple[e.SortKey, ...]:
    """The definition's ORDER BY, as far as it names the first columns one after the other: the rows
    of a new view are stored in that order."""
    if not isinstance(plan, n.Sort):
        return ()
    found = []
    for place, key in enumerate(plan.keys):
        if not isinstance(key.expression, e.Column) or key.expression.index != place:
            break
        found.append(key)
    return tuple(found)


_TEXT_OF_JSON = Function("text of json", (JSON,), TEXT, str)
_JSON_OF_TEXT = Function("json of text", (TEXT,), JSON, str)


def _compile_json_bag(plan: n.Node) -> MaintenancePlan:
    """Rows with JSON columns, which have neither order nor equality: stored as text."""
    fields = plan.fields
    stored = tuple(f._replace(type=TEXT) if f.type.kind is Kind.JSON else f for f in fields)
    _require_key_encodable(stored)
    below = n.Project(plan, _convert_json_columns(fields, _TEXT_OF_JSON), stored)
    whole, columns = (
        _make_bag_read_plan_builder(stored),
        _convert_json_columns(fields, _JSON_OF_TEXT),
    )

    def build_read_plan(view: int) -> n.Node:
        return n.Project(whole(view), columns, fields)

    return MaintenancePlan(build_delta_tree(below), None, stored, 1, build_read_plan)


def _convert_json_columns(fields: Fields, function: Function) -> tuple[e.Expression, ...]:
    """The columns, with the function applied to those of JSON; the type of its argument is that
    of the column it reads."""
    (given,) = function.arguments
    assert isinstance(given, SqlType)
    columns: list[e.Expression] = []
    for i, field in enumerate(fields):
        json = field.type.kind is Kind.JSON
        column = e.Column(i, given if json else field.type, field.name)
        assert isinstance(function.result, SqlType)
        columns.append(e.Call(function, (column,), function.result) if json else column)
    return tuple(columns)


def _compile_colocated_join(plan: n.Node) -> MaintenancePlan:
    """A join as re-keyed rows of its tables, joined when it is read."""
    made = colocated_layout.build_colocated_join(build_delta_tree(plan))
    _require_key_encodable(made.stored)
    state = _make_bag_read_plan_builder(made.stored)

    def build_read_plan(view: int) -> n.Node:
        return colocated_layout.build_colocated_read_plan(made, state(view), plan.fields)

    def build_narrowed_read_plan(view: int, condition: e.Expression) -> n.Node:
        return colocated_layout.build_colocated_read_plan(
            made,
            colocated_layout.build_restricted_state_plan(made, state(view), condition),
            plan.fields,
        )

    return MaintenancePlan(
        made.tree,
        None,
        made.stored,
        1,
        build_read_plan,
        build_narrowed_read_plan=build_narrowed_read_plan,
    )


def _make_bag_read_plan_builder(
    stored: Fields, *, distinct: bool = False
) -> Callable[[int], n.Node]:
    build = _build_counted_once_plan if distinct else _build_repeated_rows_plan
    return lambda view: build(_make_state_scan(view, stored=stored, amounts=1), len(stored), stored)


def require_deterministic(plan: n.Node) -> None:
    """Refuse functions whose result depends on more than the rows. PostgreSQL's output functions
    are stable because of settings that are fixed here, and those that read the time zone get that
    of the catalog, which is UTC: both count as immutable."""
    items = list(walk_plan_items(plan))
    name = _find_undetermined_function(items)
    if name is not None:
        raise unsupported_construct_error(
            f"function {name}", "its result depends on more than the rows"
        )
    table = find_foreign_table(plan)
    if table is not None:
        raise unsupported_construct_error(
            f"foreign table {table}", "changes of its rows are not in the log"
        )
    _refuse_sequences_and_parameters(items)


def find_foreign_table(plan: n.Node) -> str | None:
    """The name of a foreign table that the plan reads; None without one."""
    scans = (node for node in transform.walk_plan(plan) if isinstance(node, n.ForeignScan))
    return next((scan.name for scan in scans), None)


def find_untracked_dependency(plan: n.Node) -> str | None:
    """What makes the rows depend on more than tables whose changes are logged, in words; None:
    nothing."""
    table = find_foreign_table(plan)
    if table is not None:
        return f"foreign table {table}"
    return _find_undetermined_function(list(walk_plan_items(plan)))


def find_zone_dependent_function(plan: n.Node) -> str | None:
    """The name of a function whose result depends on the time zone; None without one."""
    for item, function, arguments in _find_non_immutable_calls(list(walk_plan_items(plan))):
        results = item.fields if isinstance(item, n.TableCall) else (item,)
        types = tuple(argument.type for argument in arguments)
        zoned = any(depends_on_zone(function, types, result.type) for result in results)
        if zoned and not function.environment:
            return function.name
    return None


def _find_undetermined_function(items: Iterable[Any]) -> str | None:
    """The name of a function whose result depends on more than the rows; None without one."""
    for _, function, arguments in _find_non_immutable_calls(items):
        stable = function.volatility is Volatility.STABLE
        if not (stable and arguments and not function.environment):
            return function.name
    return None


def _find_non_immutable_calls(
    items: Iterable[Any],
) -> Iterator[tuple[Any, Function, tuple[e.Expression, ...]]]:
    """Every call of a function that is not immutable, with the function and its arguments."""
    for item in items:
        function = getattr(item, "function", None)
        if isinstance(function, Function) and function.volatility is not Volatility.IMMUTABLE:
            arguments = (item.operand,) if isinstance(item, e.Cast) else item.arguments
            yield item, function, arguments


def _refuse_sequences_and_parameters(items: Iterable[Any]) -> None:
    for item in items:
        if isinstance(item, e.SequenceCall | e.Parameter):
            raise unsupported_construct_error(
                type(item).__name__.lower(), "its value is not that of a row"
            )


def _compile_linear_aggregate(
    node: n.Aggregate,
    keeps: tuple[LinearAggregate, ...],
    above: list[n.Filter | n.Project],
    partitions: Catalog | None,
) -> MaintenancePlan:
    """Groups with amounts; operators above the aggregate are evaluated when the view is read."""
    stored = node.fields[: len(node.groups)]
    _require_key_encodable(stored)
    amounts = 1 + sum(keep.width for keep in keeps)
    tree, group = (
        build_delta_tree(node.input),
        AggregateGrouping(node.groups, node.aggregates, keeps),
    )
    state = partial(_make_state_scan, stored=stored, amounts=amounts)
    read: Callable[[int], n.Node] = state
    if partitions is not None:
        tree, group = (
            partitioned_layout.add_partition_column(partitions, tree),
            _add_partition_to_grouping(group),
        )
        state = partial(
            _make_state_scan, stored=(partitioned_layout.PARTITION, *stored), amounts=amounts
        )
        read = partitioned_layout.make_partition_sum_plan_builder(state, len(stored))

    def build_read_plan(view: int) -> n.Node:
        plan = read(view)
        if not node.groups and partitions is None:
            plan = _build_row_or_zeros_plan(plan, amounts)
        plan = _build_aggregate_projection(plan, node, keeps)
        for upper in reversed(above):
            plan = replace(upper, input=plan)
        return plan

    kept = stored if partitions is None else (partitioned_layout.PARTITION, *stored)
    return MaintenancePlan(tree, group, kept, amounts, build_read_plan)


def _add_partition_to_grouping(group: AggregateGrouping) -> AggregateGrouping:
    """The grouping with the partition before its own columns."""
    calls = [
        replace(
            call,
            arguments=partitioned_layout.shift_past_partition_column(call.arguments),
            filter=None if call.filter is None else transform.shift_columns(call.filter, 1),
        )
        for call in group.calls
    ]
    partition = e.Column(0, partitioned_layout.PARTITION.type, partitioned_layout.PARTITION.name)
    return AggregateGrouping(
        (partition, *partitioned_layout.shift_past_partition_column(group.groups)),
        tuple(calls),
        group.linear_aggregates,
    )


def _make_state_scan(view: int, *, stored: Fields, amounts: int) -> n.Scan:
    added = tuple(Field(f"amount {number}", AMOUNT_TYPE) for number in range(amounts))
    fields = stored + added
    return n.Scan(view, "state", tuple(range(len(fields))), fields)


def _build_aggregate_projection(
    plan: n.Node, node: n.Aggregate, keeps: tuple[LinearAggregate, ...]
) -> n.Project:
    """Groups and aggregate values, laid out as the Aggregate's own fields."""
    groups = len(node.groups)
    columns = [e.Column(i, f.type, f.name) for i, f in enumerate(plan.fields)]
    values: list[e.Expression] = list(columns[:groups])
    at = groups + 1
    for call, keep in zip(node.aggregates, keeps, strict=True):
        values.append(
            build_final_value_expression(
                keep.final, tuple(columns[at : at + keep.width]), call.type
            )
        )
        at += keep.width
    return n.Project(plan, tuple(values), node.fields)


def _build_row_or_zeros_plan(plan: n.Node, amounts: int) -> n.Node:
    """The state of a view without GROUP BY: one row, of zeros when nothing is stored."""
    zeros = n.Values((tuple(e.Literal(0, AMOUNT_TYPE) for _ in range(amounts)),), plan.fields)
    return n.Limit(n.SetOperation(n.SetKind.UNION, True, plan, zeros), e.Literal(1, AMOUNT_TYPE))


def _build_counted_once_plan(plan: n.Node, columns: int, fields: Fields) -> n.Node:
    """Each stored row once, unless its count has come to zero and nobody has folded it yet."""
    counted = e.Column(columns, AMOUNT_TYPE, "rows")
    differs = resolve("<>", (AMOUNT_TYPE, AMOUNT_TYPE)).function
    present = e.Call(differs, (counted, e.Literal(0, AMOUNT_TYPE)), BOOLEAN)
    return n.Project(
        n.Filter(plan, present),
        tuple(e.Column(i, f.type, f.name) for i, f in enumerate(fields)),
        fields,
    )


def _build_repeated_rows_plan(plan: n.Node, columns: int, fields: Fields) -> n.Node:
    """Each stored row as often as its row count says."""
    numbers = resolve("generate_series", (AMOUNT_TYPE, AMOUNT_TYPE))
    counter = (Field("number", AMOUNT_TYPE),)
    bounds = (e.Literal(1, AMOUNT_TYPE), e.OuterColumn(1, columns, AMOUNT_TYPE, "rows"))
    series = n.TableFunction((n.TableCall(numbers.function, bounds, counter),), counter)
    return n.Project(
        n.Join(n.JoinKind.INNER, plan, series, lateral=True),
        tuple(e.Column(i, f.type, f.name) for i, f in enumerate(fields)),
        fields,
    )


def _require_key_encodable(fields: Fields) -> None:
    for field in fields:
        if field.type.kind in (Kind.JSON, Kind.ARRAY, Kind.RECORD):
            raise unsupported_construct_error(
                f"a {field.type} column", "rows of a view are found by their values"
            )
