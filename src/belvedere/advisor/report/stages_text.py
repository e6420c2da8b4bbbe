"""The stages of Synergy's mechanism as text: what `belvedere advise --explain` prints first."""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.advisor.synergy.mechanism import SynergyStages
from belvedere.advisor.synergy.query_rewrite import rewrite_query
from belvedere.advisor.synergy.rooted_trees import RootedTree
from belvedere.advisor.synergy.schema_graph import SchemaEdge, SchemaGraph


def describe_stages(stages: SynergyStages) -> list[str]:
    return [
        *_describe_graph(stages),
        *_describe_dag(stages),
        "topological order",
        "  " + ", ".join(map(stages.graph.name_relation, stages.order)),
        *_describe_roots(stages),
        *_describe_trees(stages),
        "candidate views",
        *(f"  {view.describe_path(stages.graph)}" for view in stages.candidates),
        *_describe_selections(stages),
        *_describe_indexes(stages),
    ]


def _describe_graph(stages: SynergyStages) -> Iterator[str]:
    graph = stages.graph
    yield "schema graph" + (
        " (no foreign key is declared: joins of the workload are the edges)"
        if graph.from_workload
        else ""
    )
    for edge in graph.edges:
        yield f"  {_describe_edge(graph, edge)}  weight {stages.weight(edge):g}"
    for edge in graph.left_out:
        yield f"  left out, it closes a circle: {_describe_edge(graph, edge)}"


def _describe_edge(graph: SchemaGraph, edge: SchemaEdge) -> str:
    parent, child = graph.name_relation(edge.parent), graph.name_relation(edge.child)
    return f"{parent} -> {child} {graph.describe_edge(edge)}"


def _describe_dag(stages: SynergyStages) -> Iterator[str]:
    yield "schema DAG"
    removed = [edge for edge in stages.graph.edges if edge not in stages.dag.edges]
    for edge in removed:
        yield f"  removed: {_describe_edge(stages.graph, edge)}"
    if not removed:
        yield "  every edge stays"


def _describe_roots(stages: SynergyStages) -> Iterator[str]:
    names = ", ".join(map(stages.graph.name_relation, stages.roots))
    yield f"roots, {'chosen' if stages.chosen_roots else 'given'}"
    yield f"  {names or 'none'}"
    yield "rooted graphs"
    for graph in stages.rooted_graphs:
        edges = [
            f"{stages.graph.name_relation(e.parent)} -> {stages.graph.name_relation(e.child)}"
            for e in graph.edges
        ]
        yield f"  {stages.graph.name_relation(graph.root)}: {', '.join(edges) or 'alone'}"


def _describe_trees(stages: SynergyStages) -> Iterator[str]:
    yield "rooted trees"
    for tree in stages.trees:
        yield from _describe_subtree(stages.graph, tree, tree.root, 1)


def _describe_subtree(
    graph: SchemaGraph, tree: RootedTree, relation: int, depth: int
) -> Iterator[str]:
    yield "  " * depth + graph.name_relation(relation)
    for edge in tree.list_outgoing(relation):
        yield from _describe_subtree(graph, tree, edge.child, depth + 1)


def _describe_selections(stages: SynergyStages) -> Iterator[str]:
    graph = stages.graph
    yield "views selection"
    for selection in stages.selections:
        for block in selection.blocks:
            marked = ", ".join(
                f"{graph.name_relation(e.parent)} -> {graph.name_relation(e.child)}"
                for e in block.marked
            )
            yield f"  {selection.query.name} marks {marked or 'nothing'}"
            if block.repeated:
                names = ", ".join(map(graph.name_relation, block.repeated))
                yield f"    more than once in the query, so unmarked: {names}"
            for view in block.views:
                yield f"    view {view.describe_path(graph)}"
        for line in rewrite_query(graph, selection):
            yield f"    rewritten: {line}"
    yield "final view set"
    for view in stages.views:
        yield f"  {view.describe_path(graph)}"


def _describe_indexes(stages: SynergyStages) -> Iterator[str]:
    yield "view indexes"
    for index in stages.indexes:
        view = index.view.describe_path(stages.graph)
        columns = index.describe_columns(stages.graph)
        yield f"  {view} ({columns}) for {index.purpose}, {index.statement}"
    if not stages.indexes:
        yield "  none"
