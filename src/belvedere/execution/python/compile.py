"""Compilation of a plan to a function that returns its rows: one `match` over all nodes."""

from __future__ import annotations

from collections.abc import Callable

from belvedere.catalog.catalog import Catalog
from belvedere.errors import Unsupported
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.operators import (
    aggregates,
    foreign_scans,
    joins,
    row_operators,
    scans,
    set_operations,
    sort,
    virtual_tables,
    windows,
)
from belvedere.execution.python.statements import bulk_writes, dml
from belvedere.execution.run import Rows
from belvedere.plan import nodes as n

Wrap = Callable[[n.Node, Rows], Rows]
"""Wraps every node: EXPLAIN ANALYZE counts rows and time with it."""


def compile_plan(catalog: Catalog, node: n.Node, wrap: Wrap | None = None) -> Rows:
    """The rows of a plan, by Python closures made for it."""
    return compile_with_other_tier(catalog, node, None, wrap)


def compile_over_rows(catalog: Catalog, node: n.Node, scan: n.Scan) -> Rows:
    """Like `compile_plan`, with the rows of `scan`, before its residual condition, from the run
    (`Run.deltas`)."""
    given = n.Changes(scan.relation, scan.name, scan.slots, scan.fields, filter=scan.residual)

    def compile_node(inner: n.Node) -> Rows:
        return _compile_node(context, given if inner is scan else inner)

    context = CompileContext(catalog, compile_node)
    return compile_node(node)


def compile_with_other_tier(
    catalog: Catalog,
    node: n.Node,
    elsewhere: Callable[[n.Node], Rows | None] | None,
    wrap: Wrap | None = None,
) -> Rows:
    """Like `compile_plan`, but another tier may compile each node first."""

    def compile_node(inner: n.Node) -> Rows:
        compiled = (elsewhere(inner) if elsewhere else None) or _compile_node(context, inner)
        return compiled if wrap is None else wrap(inner, compiled)

    counts = wrap is not None
    context = CompileContext(
        catalog, compile_node, fuses=elsewhere is None and not counts, counts_rows=counts
    )
    return compile_node(node)


def _compile_node(context: CompileContext, node: n.Node) -> Rows:
    match node:
        case n.Scan():
            return scans.compile_scan(context, node)
        case n.Filter():
            return row_operators.compile_filter(context, node)
        case n.Project():
            return row_operators.compile_project(context, node)
        case n.Values():
            return row_operators.compile_values(context, node)
        case n.Aggregate():
            return aggregates.compile_aggregate(context, node)
        case n.Join():
            return joins.compile_join(context, node)
        case n.Sort():
            return sort.compile_sort(context, node)
        case n.Limit():
            return sort.compile_limit(context, node)
        case n.TopN():
            return sort.compile_top(context, node)
        case n.Distinct():
            return row_operators.compile_distinct(context, node)
        case n.Window():
            return windows.compile_window(context, node)
        case n.SetOperation():
            return set_operations.compile_set_operation(context, node)
        case _:
            return _compile_rare_node(context, node)


def _compile_rare_node(context: CompileContext, node: n.Node) -> Rows:
    match node:
        case n.With():
            return set_operations.compile_with(context, node)
        case n.CteScan():
            return set_operations.compile_cte_scan(node)
        case n.RecursiveUnion():
            return set_operations.compile_recursive_union(context, node)
        case n.TableFunction():
            return row_operators.compile_table_function(context, node)
        case n.VirtualScan():
            return virtual_tables.compile_virtual_scan(node)
        case n.ForeignScan():
            return foreign_scans.compile_foreign_scan(context, node)
        case n.Lock():
            return row_operators.compile_lock(context, node)
        case n.Changes():
            return scans.compile_changes(context, node)
        case n.Insert():
            return dml.compile_insert(context, node)
        case n.Update():
            bulk = bulk_writes.compile_bulk_update(context, node)
            return bulk or dml.compile_update(context, node)
        case n.Delete():
            bulk = bulk_writes.compile_bulk_delete(context, node)
            return bulk or dml.compile_delete(context, node)
        case _:
            raise Unsupported("plan node outside of a delta plan", node=type(node).__name__)
