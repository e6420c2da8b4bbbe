"""The blocks of a plan: which of its nodes a view could answer, and a plan with one answered."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.views.rewrite.block import QueryBlock, build_query_block

_SPJ = (n.Scan, n.Filter, n.Project, n.Join)


class BlockSite(NamedTuple):
    """A node of a plan, and the block whose top it is."""

    node: n.Node
    block: QueryBlock


def list_block_sites(plan: n.Node, catalog: Catalog) -> list[BlockSite]:
    """The blocks of the plan and of its sub-queries, outer ones first. The rows that a grouped
    block groups are a block too."""
    return list(_iterate_block_sites(plan, False, catalog))


def _iterate_block_sites(node: n.Node, inside: bool, catalog: Catalog) -> Iterator[BlockSite]:
    """`inside`: the node is part of the block of a node above it."""
    joined = isinstance(node, _SPJ)
    if not (joined and inside):
        block = build_query_block(node, catalog)
        if block is not None and block.tables:
            yield BlockSite(node, block)
    for expression in transform.own_expressions(node):
        for plan in _list_subplans(expression):
            yield from _iterate_block_sites(plan, False, catalog)
    for child in transform.inputs(node):
        yield from _iterate_block_sites(
            child, joined and _is_child_in_same_block(node, child), catalog
        )


def _is_child_in_same_block(node: n.Node, child: n.Node) -> bool:
    """Whether a child of a node of a block belongs to the block, if it can."""
    if not isinstance(node, n.Join):
        return True
    if node.lateral:
        return False
    return node.kind is n.JoinKind.INNER or (node.kind is n.JoinKind.LEFT and child is node.left)


def _list_subplans(expression: e.Expression) -> list[n.Node]:
    plan = transform.subplan(expression)
    found = [] if plan is None else [plan]
    return found + [
        inner for one in transform.operands(expression) for inner in _list_subplans(one)
    ]


def replace_plan_node(plan: n.Node, old: n.Node, new: n.Node) -> n.Node:
    """The plan with this very node replaced, also where it is part of a sub-query."""

    def replace_node(node: n.Node) -> n.Node:
        if node is old:
            return new
        node = transform.rebuild_expressions(node, replace_in_expression)
        return transform.rebuild_inputs(node, replace_node)

    def replace_in_expression(expression: e.Expression) -> e.Expression:
        return transform.with_subplan(
            transform.rebuild_operands(expression, replace_in_expression), replace_node
        )

    return replace_node(plan)


def writes_or_locks_rows(plan: n.Node) -> bool:
    """Then it needs the rows of tables, which no view has."""
    return any(
        isinstance(node, n.Insert | n.Update | n.Delete | n.Lock)
        for node in transform.walk_plan(plan)
    )
