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
from belvedere.views.compile.auxiliary_views import (
    Auxiliary,
    AuxiliaryGroups,
    define_aggregate_auxiliaries,
    define_limit_auxiliary,
    define_set_operation_auxiliaries,
)
from belvedere.views.compile.compile_view import MaintenancePlan, find_foreign_table
from belvedere.views.delta.delta_plan import DeltaTerm, build_delta_terms
from belvedere.views.delta.delta_tree import (
    Apply,
    DeltaTree,
    FullRecompute,
    LinearCore,
    Map,
    Recompute,
    Union,
)
from belvedere.views.delta.first_rows import match_first_rows_query
from belvedere.views.delta.linear_core import Expressions, describe_node
from belvedere.views.delta.min_max import match_min_max_query
from belvedere.views.delta.window_rows import match_window_rows_query
from belvedere.views.explain.cost_estimate import describe_incrementality

_DISTRIBUTIVE = ("count", "sum")
_ENDS = ("min", "max", "bool_and", "bool_or", "every")
_ALGEBRAIC = ("avg", "variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop")


def build_explain_lines(catalog: Catalog, compiled: MaintenancePlan) -> list[str]:
    """The lines that explain a view, without positions or costs."""
    lines = [
        describe_incrementality(compiled.tree),
        _describe_stored_state(compiled),
        *_describe_recomputed_aggregates(compiled.tree),
    ]
    lines += _describe_delta_tree(catalog, compiled.tree)
    for number, one in enumerate(compiled.required_auxiliaries, 1):
        lines += [f"auxiliary view {number}: {describe_auxiliary_view(one)}"]
    return lines


def describe_auxiliary_view(one: Auxiliary) -> str:
    """One line about what an auxiliary view stores."""
    tables = ", ".join(dict.fromkeys(_list_scanned_table_names(one.tree)))
    if isinstance(one, AuxiliaryGroups):
        calls = "; ".join(["rows", *map(_describe_aggregate_call, one.calls)])
        return f"groups ({_join_expression_texts(one.groups)}) of {tables}: {calls}"
    keys = ", ".join(
        print_expression(key.expression) + (" desc" if key.descending else "") for key in one.keys
    )
    return f"rows of {tables} by {keys}"


def _list_scanned_table_names(tree: DeltaTree) -> Iterator[str]:
    for node in transform.walk_plan(tree.plan):
        if isinstance(node, n.Scan):
            yield node.name


def _describe_aggregate_call(call: e.AggregateCall) -> str:
    name = call.function.name
    distinct = "distinct " if call.distinct else ""
    arguments = _join_expression_texts(call.arguments) or "*"
    return f"{name}({distinct}{arguments}), {classify_aggregate(name, call.distinct)}"


def _describe_recomputed_aggregates(tree: DeltaTree) -> list[str]:
    """The aggregates that are not in the view's own state, and their kinds."""
    if not isinstance(tree, Recompute | Map):
        return []
    below = tree.inputs[0].tree if isinstance(tree, Recompute) else tree.input
    plan = tree.plan
    mine = (
        [f"aggregates: {'; '.join(map(_describe_aggregate_call, plan.aggregates))}"]
        if isinstance(plan, n.Aggregate) and plan.aggregates
        else []
    )
    return mine + _describe_recomputed_aggregates(below)


def classify_aggregate(name: str, distinct: bool = False) -> str:
    """The kind of an aggregate: whether results of parts of a group can be combined, and how."""
    if distinct and name not in _ENDS:
        return "holistic"
    if name in _ENDS:
        return "distributive for inserts, holistic for deletes"
    if name in _DISTRIBUTIVE:
        return "distributive"
    return "algebraic" if name in _ALGEBRAIC else "holistic"


def _describe_stored_state(compiled: MaintenancePlan) -> str:
    columns = ", ".join(field.name for field in compiled.stored)
    if compiled.group is None:
        return f"kept: rows ({columns}) with how often each is there"
    calls = map(_describe_aggregate_call, compiled.group.calls)
    return f"kept: groups ({columns}), {compiled.amounts} amounts: " + "; ".join(["rows", *calls])


def _describe_delta_tree(catalog: Catalog, tree: DeltaTree) -> Iterator[str]:
    match tree:
        case LinearCore():
            yield from _describe_linear_core(catalog, tree)
        case Map():
            yield print_plan(tree.plan).splitlines()[0] + " of what changes in"
            yield from _indent_lines(_describe_delta_tree(catalog, tree.input))
        case Union():
            yield "union all of what changes in"
            for side in (tree.left, tree.right):
                yield from _indent_lines(_describe_delta_tree(catalog, side))
        case Apply():
            yield from _describe_apply_operator(catalog, tree)
        case Recompute():
            yield from _describe_recompute_operator(catalog, tree)
        case FullRecompute():
            yield from _describe_full_recompute(tree)
            yield from _indent_lines(iter(print_plan(tree.plan).splitlines()))


def _describe_full_recompute(tree: FullRecompute) -> Iterator[str]:
    foreign = find_foreign_table(tree.plan)
    if foreign is None:
        yield "computed again as a whole when a row of any of its tables changes"
    elif tree.relations:
        yield "computed again as a whole when a row of any of its own tables changes"
    if foreign is not None:
        yield f"and by REFRESH: changes of foreign table {foreign} are not in the log"


def _describe_linear_core(catalog: Catalog, tree: LinearCore) -> Iterator[str]:
    terms = build_delta_terms(tree.branches, tree.plan.fields, catalog)
    yield f"linear, {len(terms)} term{'' if len(terms) == 1 else 's'}"
    for term in terms:
        yield from _indent_lines(_describe_delta_term(tree, term))


def _describe_delta_term(tree: LinearCore, term: DeltaTerm) -> Iterator[str]:
    leaves = tree.branches[term.branch].leaves
    names = " and ".join(leaves[number].name for number in term.changed)
    scans = f", {term.scans} full scan{'' if term.scans == 1 else 's'}" if term.scans else ""
    yield f"when {names} change{'s' if len(term.changed) == 1 else ''}{scans}"
    for one in term.foreign_key_joins:
        yield f"  pruned: rows that come to {leaves[one.parent].name} ({one.foreign_key})"
    yield from _indent_lines(iter(print_plan(term.plan).splitlines()))


def _describe_apply_operator(catalog: Catalog, tree: Apply) -> Iterator[str]:
    what = "sub-query" if isinstance(tree.plan, n.Filter | n.Project) else describe_node(tree.plan)
    yield f"{what}: left rows that change are done as they are"
    yield from _indent_lines(_describe_delta_tree(catalog, tree.left))
    for right in tree.rights:
        keys = _join_expression_texts(right.left_keys)
        which = f"the left rows with the same {keys}" if keys else "every left row"
        flips = tree.join is not None and tree.join.residual is None
        if flips and tree.join is not None and tree.join.kind is not n.JoinKind.INNER:
            which += ", for a first or last match"
        yield f"right rows that change touch {which}"
        yield from _indent_lines(_describe_delta_tree(catalog, right.tree))


def _describe_recompute_operator(catalog: Catalog, tree: Recompute) -> Iterator[str]:
    keys = _join_expression_texts(tree.inputs[0].keys)
    if match_min_max_query(tree) is not None or match_first_rows_query(catalog, tree) is not None:
        which = f"for the touched {keys}" if keys else "at every change"
        yield f"{describe_node(tree.plan)}: read again from the ends of an index {which}"
        yield from _indent_lines(_describe_delta_tree(catalog, tree.inputs[0].tree))
        return
    near = match_window_rows_query(catalog, tree)
    if near is not None:
        rows = f"the first {near.first_rows} rows" if near.reach is None else "the rows around it"
        which = f" of the touched {keys}" if keys else ""
        yield f"{describe_node(tree.plan)}: {rows}{which} read again from an index"
        yield from _indent_lines(_describe_delta_tree(catalog, tree.inputs[0].tree))
        return
    counts = (
        isinstance(tree.plan, n.SetOperation) and len(define_set_operation_auxiliaries(tree)) == 2
    )
    if (
        counts
        or define_aggregate_auxiliaries(tree) is not None
        or define_limit_auxiliary(tree) is not None
    ):
        which = f"for the touched {keys}" if keys else "at every change"
        yield f"{describe_node(tree.plan)}: read again from auxiliary views {which}"
        for one in tree.inputs:
            yield from _indent_lines(_describe_delta_tree(catalog, one.tree))
        return
    what = f"the rows with the touched {keys}" if keys else "everything"
    yield f"{describe_node(tree.plan)}: done again over {what}, before and after"
    for one in tree.inputs:
        yield from _indent_lines(_describe_delta_tree(catalog, one.tree))


def _join_expression_texts(expressions: Expressions) -> str:
    return ", ".join(map(print_expression, expressions))


def _indent_lines(lines: Iterator[str]) -> Iterator[str]:
    return ("  " + line for line in lines)
