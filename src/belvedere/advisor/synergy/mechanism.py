"""All stages of Synergy's mechanism, one after the other, with what each of them gave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from belvedere.advisor.synergy.candidate_views import PathView, list_candidate_views
from belvedere.advisor.synergy.overlapping_joins import EdgeWeight, count_overlapping_joins
from belvedere.advisor.synergy.rooted_graphs import RootedGraph, assign_relations_to_roots
from belvedere.advisor.synergy.rooted_trees import RootedTree, transform_to_trees
from belvedere.advisor.synergy.roots import choose_roots
from belvedere.advisor.synergy.schema_dag import transform_to_dag
from belvedere.advisor.synergy.schema_graph import SchemaGraph, build_schema_graph
from belvedere.advisor.synergy.topological_order import order_topologically
from belvedere.advisor.synergy.view_indexes import (
    ViewIndex,
    add_maintenance_indexes,
    add_read_indexes,
)
from belvedere.advisor.synergy.view_selection import QuerySelection, select_views
from belvedere.advisor.workload.bound_workload import BoundWorkload
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table


@dataclass(frozen=True, slots=True)
class SynergyStages:
    """What each stage gave. `chosen_roots`: nobody named them."""

    graph: SchemaGraph
    weight: EdgeWeight
    dag: SchemaGraph
    order: tuple[int, ...]
    roots: tuple[int, ...]
    chosen_roots: bool
    rooted_graphs: list[RootedGraph]
    trees: list[RootedTree]
    candidates: list[PathView]
    selections: list[QuerySelection]
    views: list[PathView]
    indexes: list[ViewIndex]


def run_mechanism(
    catalog: Catalog,
    workload: BoundWorkload,
    roots: Sequence[str] = (),
    weight: EdgeWeight | None = None,
) -> SynergyStages:
    """Run the stages, with these roots; without any they are chosen."""
    graph = build_schema_graph(catalog, workload.queries)
    weight = weight or count_overlapping_joins(graph, workload.queries)
    dag = transform_to_dag(graph, weight)
    order = order_topologically(dag.relations, dag.edges)
    named = tuple(catalog.require_relation(Table, name).id for name in roots)
    chosen = named or choose_roots(dag, order, weight)
    graphs = assign_relations_to_roots(dag, order, chosen, weight)
    trees = transform_to_trees(graphs, weight)
    selections = select_views(trees, workload.queries)
    views = list(dict.fromkeys(view for one in selections for view in one.views))
    indexes = add_read_indexes(graph, selections)
    indexes += add_maintenance_indexes(graph, views, workload.writes)
    return SynergyStages(
        graph,
        weight,
        dag,
        order,
        chosen,
        not named,
        graphs,
        trees,
        list_candidate_views(trees),
        selections,
        views,
        indexes,
    )
