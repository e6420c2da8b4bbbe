"""Set operations, CTEs and recursion."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator

from belvedere.execution.memory_limit import CHUNK_ROWS
from belvedere.execution.python.context import CompileContext, row_keys
from belvedere.execution.python.operators.row_operators import distinct_rows
from belvedere.execution.run import CteRows, Rows, Run
from belvedere.plan import nodes as n
from belvedere.types import Row

KeyOf = Callable[[Row], Row]


def compile_set_operation(context: CompileContext, node: n.SetOperation) -> Rows:
    left, right = context.plan(node.left), context.plan(node.right)
    key = row_keys(node.fields)
    match node.kind:
        case n.SetKind.UNION:

            def union_rows(run: Run) -> Iterator[Row]:
                return itertools.chain(left(run), _run_lazily(right, run))

            return (
                union_rows
                if node.all
                else lambda run: distinct_rows(union_rows(run), key, run.memory)
            )
        case n.SetKind.INTERSECT:
            return lambda run: _intersect_rows(
                left(run), run.memory.count_held(right(run)), key, node.all
            )
        case n.SetKind.EXCEPT:
            return lambda run: _except_rows(
                left(run), run.memory.count_held(right(run)), key, node.all
            )


def _run_lazily(rows: Rows, run: Run) -> Iterator[Row]:
    yield from rows(run)


def _intersect_rows(
    left: Iterator[Row], right: Iterator[Row], key: KeyOf, all_: bool
) -> Iterator[Row]:
    counts = Counter(map(key, right))
    for row in left:
        value = key(row)
        if counts[value] > 0:
            counts[value] = counts[value] - 1 if all_ else 0
            yield row


def _except_rows(
    left: Iterator[Row], right: Iterator[Row], key: KeyOf, all_: bool
) -> Iterator[Row]:
    counts = Counter(map(key, right))
    for row in left:
        value = key(row)
        if counts[value] > 0:
            if all_:
                counts[value] -= 1
        else:
            if not all_:
                counts[value] = 1
            yield row


def compile_with(context: CompileContext, node: n.With) -> Rows:
    """Each CTE is computed once, as far as it is read; those that change data always to the end."""
    plans = [(cte.number, context.plan(cte.plan), _changes_data(cte.plan)) for cte in node.ctes]
    body = context.plan(node.body)

    def run_with_ctes(run: Run) -> Iterator[Row]:
        inner = run
        changing = []
        for number, plan, changes in plans:
            found = CteRows(run.memory.count_held(plan(inner)))
            if changes:
                changing.append(found)
            inner = inner.with_ctes({number: found})
        yield from body(inner)
        for one in changing:
            one.read_all()

    return run_with_ctes


def _changes_data(node: n.Node) -> bool:
    return isinstance(node, n.Insert | n.Update | n.Delete)


def compile_cte_scan(node: n.CteScan) -> Rows:
    return lambda run: iter(run.ctes[node.cte])


def compile_recursive_union(context: CompileContext, node: n.RecursiveUnion) -> Rows:
    base, step = context.plan(node.base), context.plan(node.step)
    key = row_keys(node.fields)

    def iterate_union(run: Run) -> Iterator[Row]:
        seen: set[Row] = set()
        added = base(run)
        while True:
            work = []
            for row in added:
                if not node.all:
                    value = key(row)
                    if value in seen:
                        continue
                    seen.add(value)
                    if not len(seen) % CHUNK_ROWS:
                        run.memory.reserve_rows(CHUNK_ROWS, row)
                work.append(row)
                yield row
            if not work:
                return
            run.interrupt.check()
            added = step(run.with_ctes({node.cte: CteRows(work)}))

    return iterate_union
