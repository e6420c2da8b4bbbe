"""From the rows that come and go to what is added to a view's state: groups and amounts.

Expressions of a definition ask nothing of a run but the row (`compile.require_deterministic`), so
they are bound once, to a run of nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation import compiled_table
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.direct.context import Context
from belvedere.execution.run import Interrupt, Run
from belvedere.plan import expressions as e
from belvedere.plan import transform
from belvedere.txn.border import Reader, RowChange
from belvedere.types import Row
from belvedere.views.compile import Group
from belvedere.views.core import Branch, Expressions
from belvedere.views.linear import Amounts
from belvedere.views.operators import looks_different
from belvedere.views.source import ENVIRONMENT, NO_SERVICES, Weighted
from belvedere.views.tree import Core, Tree

Entry = tuple[Row, Amounts]
"""Stored columns, and the amounts that one row adds."""

EntryOf = Callable[[Row], Entry]
ONE: Amounts = (1,)


def entries(entry_of: EntryOf | None, rows: Weighted) -> Iterator[tuple[Row, Amounts, int]]:
    """Rows of a tree as (stored columns, amounts, weight)."""
    if entry_of is None:
        return ((row, ONE, weight) for row, weight in rows)
    return ((*entry_of(row), weight) for row, weight in rows)


def entry_function(
    catalog: Catalog, group: Group | None, columns: Expressions | None = None
) -> EntryOf | None:
    """What a row adds; None: itself, once. `columns` are what the group's expressions are over,
    given over the row; None: they are over the row itself."""
    bind = _Binder(catalog, columns)
    if group is None:
        if columns is None:
            return None
        row_of = bind.values(columns, over_row=True)
        return lambda row: (row_of(row), ONE)
    group_of = bind.values(group.groups)
    steps = [
        (
            bind.values(call.arguments) if call.arguments else None,
            None if call.filter is None else bind.truth(call.filter),
            keep.amounts,
            keep.amounts(None),
        )
        for call, keep in zip(group.calls, group.keeps, strict=True)
    ]

    def entry(row: Row) -> Entry:
        amounts = ONE
        for given, kept, amounts_of, nothing in steps:
            if kept is not None and not kept(row):
                amounts += nothing
            else:
                amounts += amounts_of(True if given is None else given(row)[0])
        return group_of(row), amounts

    return entry


class _Binder:
    def __init__(self, catalog: Catalog, columns: Expressions | None) -> None:
        self._context = Context(catalog, lambda node: compile_plan(catalog, node))
        self._columns = columns
        nothing: Reader = None  # type: ignore[assignment]
        self._run = Run(nothing, (), ENVIRONMENT, NO_SERVICES, Interrupt())

    def values(self, expressions: Expressions, *, over_row: bool = False) -> Callable[[Row], Row]:
        given = expressions if over_row else tuple(map(self._placed, expressions))
        return self._context.tuple_of(given)(self._run)

    def truth(self, condition: e.Expression) -> Callable[[Row], bool]:
        return self._context.truth_of(self._placed(condition))(self._run)

    def condition(self, conditions: Expressions) -> Callable[[Row], bool] | None:
        whole = transform.conjunction(list(conditions))
        return None if whole is None else self._context.truth_of(whole)(self._run)

    def _placed(self, expression: e.Expression) -> e.Expression:
        columns = self._columns
        if columns is None:
            return expression
        return transform.map_columns(expression, lambda column: columns[column.index])


# -- one table at a time ---------------------------------------------------------------------------

OneTable = Callable[[Sequence[RowChange]], Iterator[tuple[Row, Amounts, int]]]


def stateless(catalog: Catalog, tree: Tree, group: Group | None) -> OneTable | None:
    """The short way for a core whose branches have one table each: every changed row by itself,
    without a plan. None where the tree needs more than that."""
    if not isinstance(tree, Core):
        return None
    branches = tree.branches
    if any(len(b.leaves) != 1 or b.leaves[0].constant is not None for b in branches):
        return None
    by_relation: dict[int, list[_OneTableBranch]] = {}
    for branch in branches:
        made = _OneTableBranch(catalog, branch, group)
        by_relation.setdefault(branch.leaves[0].relation, []).append(made)

    def added(changes: Sequence[RowChange]) -> Iterator[tuple[Row, Amounts, int]]:
        for change in changes:
            for branch in by_relation.get(change.relation, ()):
                yield from branch.entries(change.old, change.new)

    return added


class _OneTableBranch:
    def __init__(self, catalog: Catalog, branch: Branch, group: Group | None) -> None:
        (leaf,) = branch.leaves
        self._project = compiled_table(catalog, leaf.relation).layout.projector(leaf.slots)
        self._disguised = looks_different(leaf.fields)
        self._keeps = _Binder(catalog, None).condition(branch.conditions)
        entry = entry_function(catalog, group, branch.columns)
        assert entry is not None
        self._entry = entry

    def entries(self, old: bytes | None, new: bytes | None) -> Iterator[tuple[Row, Amounts, int]]:
        project, keeps, entry = self._project, self._keeps, self._entry
        before = None if old is None else project(old)
        after = None if new is None else project(new)
        if before == after and not (self._disguised and repr(before) != repr(after)):
            return
        if before is not None and (keeps is None or keeps(before)):
            yield (*entry(before), -1)
        if after is not None and (keeps is None or keeps(after)):
            yield (*entry(after), 1)
