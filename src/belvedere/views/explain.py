"""EXPLAIN of a view: its stored state and its delta plan as text.

The delta plan has one term for each set of tables that can change together.

    incremental
    kept: groups (customer), 4 amounts: rows; count(*), distributive; avg(total), algebraic
    linear, 1 term
      when orders changes
        Project customer, total
          Changes orders (customer, total)
"""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.expression_printer import print_expression
from belvedere.plan.printer import print_plan
from belvedere.views.auxiliary import Auxiliary, KeptGroups, counts_of, ordered_rows, parts_of
from belvedere.views.compile import Compiled
from belvedere.views.core import Expressions, name_of
from belvedere.views.delta import Term, terms_of
from belvedere.views.extremum import extrema_of
from belvedere.views.price import how
from belvedere.views.tree import Apply, Core, Map, Recompute, Tree, Union, Whole

_DISTRIBUTIVE = ("count", "sum")
_ENDS = ("min", "max", "bool_and", "bool_or", "every")
_ALGEBRAIC = ("avg", "variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop")


def explained(catalog: Catalog, compiled: Compiled) -> list[str]:
    """The lines that explain a view, without positions or costs."""
    lines = [how(compiled.tree), _state(compiled), *_aggregates(compiled.tree)]
    lines += _tree(catalog, compiled.tree)
    for number, one in enumerate(compiled.auxiliaries, 1):
        lines += [f"auxiliary view {number}: {described(one)}"]
    return lines


def described(one: Auxiliary) -> str:
    """One line about what an auxiliary view stores."""
    tables = ", ".join(dict.fromkeys(_tables(one.tree)))
    if isinstance(one, KeptGroups):
        calls = "; ".join(["rows", *map(_call, one.calls)])
        return f"groups ({_texts(one.groups)}) of {tables}: {calls}"
    keys = ", ".join(
        print_expression(key.expression) + (" desc" if key.descending else "") for key in one.keys
    )
    return f"rows of {tables} by {keys}"


def _tables(tree: Tree) -> Iterator[str]:
    for node in transform.walk(tree.plan):
        if isinstance(node, n.Scan):
            yield node.name


def _call(call: e.AggregateCall) -> str:
    name = call.function.name
    distinct = "distinct " if call.distinct else ""
    return f"{name}({distinct}{_texts(call.arguments) or '*'}), {kind_of(name, call.distinct)}"


def _aggregates(tree: Tree) -> list[str]:
    """The aggregates that are not in the view's own state, and their kinds."""
    if not isinstance(tree, Recompute | Map):
        return []
    below = tree.inputs[0].tree if isinstance(tree, Recompute) else tree.input
    plan = tree.plan
    mine = (
        [f"aggregates: {'; '.join(map(_call, plan.aggregates))}"]
        if isinstance(plan, n.Aggregate) and plan.aggregates
        else []
    )
    return mine + _aggregates(below)


def kind_of(name: str, distinct: bool = False) -> str:
    """The kind of an aggregate: whether results of parts of a group can be combined, and how."""
    if distinct and name not in _ENDS:
        return "holistic"
    if name in _ENDS:
        return "distributive for inserts, holistic for deletes"
    if name in _DISTRIBUTIVE:
        return "distributive"
    return "algebraic" if name in _ALGEBRAIC else "holistic"


def _state(compiled: Compiled) -> str:
    columns = ", ".join(field.name for field in compiled.stored)
    if compiled.group is None:
        return f"kept: rows ({columns}) with how often each is there"
    calls = map(_call, compiled.group.calls)
    return f"kept: groups ({columns}), {compiled.amounts} amounts: " + "; ".join(["rows", *calls])


def _tree(catalog: Catalog, tree: Tree) -> Iterator[str]:
    match tree:
        case Core():
            yield from _core(catalog, tree)
        case Map():
            yield print_plan(tree.plan).splitlines()[0] + " of what changes in"
            yield from _indented(_tree(catalog, tree.input))
        case Union():
            yield "union all of what changes in"
            for side in (tree.left, tree.right):
                yield from _indented(_tree(catalog, side))
        case Apply():
            yield from _apply(catalog, tree)
        case Recompute():
            yield from _recompute(catalog, tree)
        case Whole():
            yield "computed again as a whole when a row of any of its tables changes"
            yield from _indented(iter(print_plan(tree.plan).splitlines()))


def _core(catalog: Catalog, tree: Core) -> Iterator[str]:
    terms, _ = terms_of(tree.branches, tree.plan.fields, catalog)
    yield f"linear, {len(terms)} term{'' if len(terms) == 1 else 's'}"
    for term in terms:
        yield from _indented(_term(tree, term))


def _term(tree: Core, term: Term) -> Iterator[str]:
    leaves = tree.branches[term.branch].leaves
    names = " and ".join(leaves[number].name for number in term.changed)
    scans = f", {term.scans} full scan{'' if term.scans == 1 else 's'}" if term.scans else ""
    yield f"when {names} change{'s' if len(term.changed) == 1 else ''}{scans}"
    for one in term.pruned:
        yield f"  pruned: rows that come to {leaves[one.parent].name} ({one.foreign_key})"
    yield from _indented(iter(print_plan(term.plan).splitlines()))


def _apply(catalog: Catalog, tree: Apply) -> Iterator[str]:
    what = "sub-query" if isinstance(tree.plan, n.Filter | n.Project) else name_of(tree.plan)
    yield f"{what}: left rows that change are done as they are"
    yield from _indented(_tree(catalog, tree.left))
    for right in tree.rights:
        keys = _texts(right.left_keys)
        which = f"the left rows with the same {keys}" if keys else "every left row"
        flips = tree.join is not None and tree.join.residual is None
        if flips and tree.join is not None and tree.join.kind is not n.JoinKind.INNER:
            which += ", for a first or last match"
        yield f"right rows that change touch {which}"
        yield from _indented(_tree(catalog, right.tree))


def _recompute(catalog: Catalog, tree: Recompute) -> Iterator[str]:
    keys = _texts(tree.inputs[0].keys)
    if extrema_of(tree) is not None:
        which = f"for the touched {keys}" if keys else "at every change"
        yield f"{name_of(tree.plan)}: read again from the ends of an index {which}"
        yield from _indented(_tree(catalog, tree.inputs[0].tree))
        return
    counts = isinstance(tree.plan, n.SetOperation) and len(counts_of(tree)) == 2
    if counts or parts_of(tree) is not None or ordered_rows(tree) is not None:
        which = f"for the touched {keys}" if keys else "at every change"
        yield f"{name_of(tree.plan)}: read again from auxiliary views {which}"
        for one in tree.inputs:
            yield from _indented(_tree(catalog, one.tree))
        return
    what = f"the rows with the touched {keys}" if keys else "everything"
    yield f"{name_of(tree.plan)}: done again over {what}, before and after"
    for one in tree.inputs:
        yield from _indented(_tree(catalog, one.tree))


def _texts(expressions: Expressions) -> str:
    return ", ".join(map(print_expression, expressions))


def _indented(lines: Iterator[str]) -> Iterator[str]:
    return ("  " + line for line in lines)
