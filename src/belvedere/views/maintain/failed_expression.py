"""The error of a view that cannot be maintained: which view, which expression, which row.

Generated code of maintenance does no book-keeping for its errors. When a change fails, this module
evaluates the expressions of the view again, one by one, over the changed rows and their join
partners after the change, until one fails in the same way.

    insert into t values (2, 0)       a view computes 10 / a

    division by zero (view=v)
    detail: the view computes 10 / a with a = 0, for the row (id) = (2) of t
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec import keyspace
from belvedere.errors import Error, InvalidInput
from belvedere.execution.python.compile import compile_plan
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field
from belvedere.txn.contracts import Reader, RowChange
from belvedere.types import Row
from belvedere.views.compile.compile_view import MaintenancePlan
from belvedere.views.delta.delta_plan import build_delta_terms, changes_leaf_id
from belvedere.views.delta.delta_tree import (
    Apply,
    DeltaTree,
    FullRecompute,
    LinearCore,
    Map,
    Recompute,
    Union,
)
from belvedere.views.delta.linear_core import CoreBranch, CoreLeaf, Expressions
from belvedere.views.delta.sessionless_run import run_compiled_plan
from belvedere.views.maintain.failing_part import (
    FailingPartFinder,
    can_evaluate_over_row,
    describe_computation,
    show_value,
)
from belvedere.views.operators.auxiliary_readers import AuxiliaryViews
from belvedere.views.operators.build import build_delta_operator
from belvedere.views.operators.operator import DeltaOperator, DeltaStep

JOINED_ROWS_MAX = 10_000
"""How many joined rows are looked at."""

FILL_BATCH_ROWS = 1_000
LOOKED_AT_MAX = 100_000
"""How many rows of a group, a window or a join are looked at."""


def build_view_error(
    catalog: Catalog,
    view: View,
    compiled: MaintenancePlan,
    kept: AuxiliaryViews,
    step: DeltaStep,
    error: InvalidInput,
) -> InvalidInput:
    """The error with the view that raised it and, where they can be found, the expression and the
    row."""
    if error.facts.keys() & {"view", "index"}:
        return error
    failed = _find_failed_expression(catalog, compiled, step, error)
    if failed is not None:
        return add_view_to_error(catalog, view, error, failed.describe(catalog))

    def give_new_rows(source: DeltaOperator) -> Iterator[Row]:
        return (row for row, weight in source.compute_delta(step) if weight > 0)

    told = _describe_failed_map(catalog, compiled, kept, step.after, error, give_new_rows)
    changed = _describe_only_change(catalog, view, step.changes)
    details = ", ".join(one for one in (told, changed) if one)
    return add_view_to_error(catalog, view, error, details or None)


def build_backfill_error(
    catalog: Catalog,
    view: View,
    compiled: MaintenancePlan,
    kept: AuxiliaryViews,
    reader: Reader,
    error: InvalidInput,
) -> InvalidInput:
    """The same for an error while the view is filled from its tables: every row is looked at as if
    it were inserted."""
    if error.facts.keys() & {"view", "index"}:
        return error
    for table in view.inputs:
        for batch in reader.scan(*keyspace.relation_range(table), batch_rows=FILL_BATCH_ROWS):
            rows = [RowChange(key, None, value) for key, value in batch]
            step = DeltaStep(rows, reader, lambda *_: (), reader)
            failed = _find_failed_expression(catalog, compiled, step, error)
            if failed is not None:
                return add_view_to_error(catalog, view, error, failed.describe(catalog))
    told = _describe_failed_map(
        catalog, compiled, kept, reader, error, lambda source: source.compute_all_rows(reader)
    )
    return add_view_to_error(catalog, view, error, told)


def add_view_to_error(
    catalog: Catalog, view: View, error: InvalidInput, detail: str | None
) -> InvalidInput:
    details = [one for one in (detail, error.detail) if one]
    named = InvalidInput(
        error.message, sqlstate=error.sqlstate, detail="; ".join(details) or None, hint=error.hint
    )
    kind = "view" if view.index is None else "index"
    named.facts = {kind: _find_user_view_name(catalog, view), **error.facts}
    return named


def _find_user_view_name(catalog: Catalog, view: View) -> str:
    """The name of the view, or of the one that an auxiliary view was made for."""
    owner = view
    while owner.part:
        owner = next(one for one in catalog.views if owner.id in one.supporting_objects)
    return owner.name


@dataclass(frozen=True, slots=True)
class _FailedExpression:
    """An expression over the row of a branch that failed for the changed row of a leaf."""

    expression: e.Expression
    row: Row
    leaf: CoreLeaf
    change: RowChange

    def describe(self, catalog: Catalog) -> str:
        text = describe_computation(self.expression, self.row)
        return f"{text}, for {_describe_changed_row(catalog, self.change)}"


def _describe_changed_row(catalog: Catalog, change: RowChange) -> str:
    """The row by its primary key, or by all its columns where it has none."""
    table = compiled_table(catalog, change.relation)
    stored = change.new if change.new is not None else change.old
    assert stored is not None
    row = table.decode(stored)
    keyed = [table.table.columns[slot] for slot in table.table.primary_key]
    shown = [c for c in keyed if not c.hidden] or [c for c in table.live_columns if not c.hidden]
    names = ", ".join(column.name for column in shown)
    values = ", ".join(show_value(row[column.slot]) for column in shown)
    return f"the row ({names}) = ({values}) of {table.table.name}"


def _describe_only_change(catalog: Catalog, view: View, changes: Sequence[RowChange]) -> str | None:
    mine = [change for change in changes if change.relation in view.inputs]
    return f"for {_describe_changed_row(catalog, mine[0])}" if len(mine) == 1 else None


def _find_failed_expression(
    catalog: Catalog, compiled: MaintenancePlan, step: DeltaStep, error: InvalidInput
) -> _FailedExpression | None:
    group = compiled.group
    above: Expressions = ()
    if group is not None:
        called = [x for call in group.calls for x in (*call.arguments, call.filter) if x]
        above = (*group.groups, *called)
    try:
        search = _FailureSearch(catalog, step, error)
        for branch, expressions in _list_expressions_by_branch(compiled.tree, above):
            found = search.search_branch(branch, expressions)
            if found is not None:
                return found
    except Error:  # what the search reads may fail as well: the first error is the one to tell
        return None
    return None


def _describe_failed_map(
    catalog: Catalog,
    compiled: MaintenancePlan,
    kept: AuxiliaryViews,
    reader: Reader,
    error: InvalidInput,
    give_rows: Callable[[DeltaOperator], Iterable[Row]],
) -> str | None:
    """What fails over the rows of a group, a window or a join, and for which of them."""
    finder = FailingPartFinder(catalog, reader, error)
    for node in _list_map_nodes(compiled.tree):
        fields = node.input.plan.fields
        try:
            rows = give_rows(build_delta_operator(catalog, node.input, kept))
            own = tuple(transform.own_expressions(node.plan))
            told = finder.describe_failing_row(own, fields, islice(rows, LOOKED_AT_MAX))
        except Error:  # the input may fail as well: the first error is the one to tell
            return None
        if told is not None:
            return told
    return None


def _list_map_nodes(tree: DeltaTree) -> Iterator[Map]:
    """The innermost first."""
    match tree:
        case Map():
            yield from _list_map_nodes(tree.input)
            yield tree
        case Union():
            yield from _list_map_nodes(tree.left)
            yield from _list_map_nodes(tree.right)
        case Apply():
            for one in (tree.left, *[right.tree for right in tree.rights]):
                yield from _list_map_nodes(one)
        case Recompute():
            for below in tree.inputs:
                yield from _list_map_nodes(below.tree)
        case LinearCore() | FullRecompute():
            return


def _list_expressions_by_branch(
    tree: DeltaTree, above: Expressions
) -> Iterator[tuple[CoreBranch, Expressions]]:
    """The branches of all cores, with what is computed from each row of them further up. `above`
    are expressions over the tree's rows."""
    match tree:
        case LinearCore():
            for branch in tree.branches:
                computed = [transform.substitute_columns(one, branch.columns) for one in above]
                yield branch, (*branch.columns, *computed)
        case Map(plan=n.Filter() as plan):
            yield from _list_expressions_by_branch(tree.input, (plan.condition, *above))
        case Map(plan=n.Project() as plan):
            computed = [transform.substitute_columns(one, plan.expressions) for one in above]
            yield from _list_expressions_by_branch(tree.input, (*plan.expressions, *computed))
        case Union():
            yield from _list_expressions_by_branch(tree.left, above)
            yield from _list_expressions_by_branch(tree.right, above)
        case Recompute(inputs=(only,)):
            own = tuple(transform.own_expressions(tree.plan))
            yield from _list_expressions_by_branch(only.tree, (*only.keys, *own))
        case Recompute():
            for one in tree.inputs:
                yield from _list_expressions_by_branch(one.tree, one.keys)
        case Apply():
            yield from _list_apply_expressions(tree, above)
        case FullRecompute():
            return


def _list_apply_expressions(
    tree: Apply, above: Expressions
) -> Iterator[tuple[CoreBranch, Expressions]]:
    """What is computed from one side alone: the keys, and `above` where rows are joined."""
    width = len(tree.left.plan.fields)
    left = [one for one in above if tree.join and max(transform.columns_of(one), default=0) < width]
    keys = [key for right in tree.rights for key in right.left_keys]
    yield from _list_expressions_by_branch(tree.left, (*keys, *left))
    for right in tree.rights:
        yield from _list_expressions_by_branch(right.tree, right.keys)


class _FailureSearch:
    """Looks for the expression that fails with this error after the step."""

    def __init__(self, catalog: Catalog, step: DeltaStep, error: InvalidInput) -> None:
        self._catalog = catalog
        self._changes = step.changes
        self._after: Reader = step.after
        self._parts = FailingPartFinder(catalog, self._after, error)

    def search_branch(
        self, branch: CoreBranch, expressions: Expressions
    ) -> _FailedExpression | None:
        plain = tuple([x for x in expressions if can_evaluate_over_row(x)])
        for number, leaf in enumerate(branch.leaves):
            given = self._project_new_rows(leaf)
            if not given:
                continue
            found = self._search_leaf_rows(branch, leaf, plain, given)
            if found is None and len(branch.leaves) > 1:
                found = self._search_joined_rows(branch, number, plain, given)
            if found is not None:
                return found
        return None

    def _project_new_rows(self, leaf: CoreLeaf) -> dict[Row, RowChange]:
        """The changes that gave rows of a leaf, by the leaf's row."""
        if leaf.constant is not None:
            return {}
        project = compiled_table(self._catalog, leaf.relation).layout.projector(leaf.slots)
        return {
            project(change.new): change
            for change in self._changes
            if change.relation == leaf.relation and change.new is not None
        }

    def _search_leaf_rows(
        self,
        branch: CoreBranch,
        leaf: CoreLeaf,
        expressions: Expressions,
        given: dict[Row, RowChange],
    ) -> _FailedExpression | None:
        """By what is computed from the changed row alone."""
        mine = set(leaf.column_range)
        before = (None,) * leaf.offset
        behind = (None,) * (branch.row_width - leaf.offset - len(leaf.fields))
        conditions = [x for x in branch.conditions if transform.columns_of(x) <= mine]
        others = [x for x in expressions if transform.columns_of(x) <= mine]
        for row, change in given.items():
            found = self._find_first_failing(conditions, others, before + row + behind)
            if found is not None:
                return _FailedExpression(found, before + row + behind, leaf, change)
        return None

    def _search_joined_rows(
        self,
        branch: CoreBranch,
        number: int,
        expressions: Expressions,
        given: dict[Row, RowChange],
    ) -> _FailedExpression | None:
        """By what is computed from the changed row and its join partners, where these are found by
        plain columns."""
        leaf = branch.leaves[number]
        fields = [field for one in branch.leaves for field in one.fields]
        columns = tuple(e.Column(i, field.type, field.name) for i, field in enumerate(fields))
        joined = replace(
            branch,
            conditions=tuple(filter(_is_column_equality, branch.conditions)),
            columns=columns,
        )
        named = tuple(Field(field.name, field.type) for field in fields)
        terms = build_delta_terms((joined,), named, self._catalog, leaves_max=1)
        (term,) = [term for term in terms if term.changed == (number,)]
        if term.scans:
            return None
        rows = run_compiled_plan(
            compile_plan(self._catalog, term.plan),
            self._after,
            {changes_leaf_id(number): list(given)},
        )
        for row in islice(rows, JOINED_ROWS_MAX):
            found = self._find_first_failing(branch.conditions, expressions, row)
            if found is not None:
                change = given[row[leaf.offset : leaf.offset + len(leaf.fields)]]
                return _FailedExpression(found, row, leaf, change)
        return None

    def _find_first_failing(
        self, conditions: Sequence[e.Expression], others: Sequence[e.Expression], row: Row
    ) -> e.Expression | None:
        """The first that fails; after a condition that does not hold, nothing is evaluated."""
        for condition in conditions:
            failed = self._parts.find_failing_part(condition, row)
            if failed is not None:
                return failed
            if self._parts.evaluate_or_catch(condition, row) is not True:
                return None
        parts = (self._parts.find_failing_part(one, row) for one in others)
        return next((part for part in parts if part is not None), None)


def _is_column_equality(condition: e.Expression) -> bool:
    return (
        isinstance(condition, e.Call)
        and condition.function.name == "="
        and all(isinstance(one, e.Column) for one in condition.arguments)
    )
