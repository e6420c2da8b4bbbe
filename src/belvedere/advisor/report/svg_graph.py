"""Drawings of schema graphs and rooted trees as SVG: relations in layers, parents on top."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from belvedere.advisor.synergy.mechanism import SynergyStages
from belvedere.advisor.synergy.schema_graph import SchemaEdge, SchemaGraph

NODE_HEIGHT = 30
LAYER_GAP = 74
NODE_GAP = 26
CHARACTER = 7.4
MARGIN = 16
COLORS = ("#0f766e", "#b45309", "#4338ca", "#be185d", "#15803d", "#7c3aed", "#b91c1c", "#0369a1")


@dataclass(frozen=True, slots=True)
class GraphPicture:
    title: str
    svg: str


@dataclass(frozen=True, slots=True)
class GraphStyle:
    """Colors of relations and edges, the text at an edge, and edges that are drawn dashed."""

    nodes: Mapping[int, str] = field(default_factory=dict)
    edges: Mapping[SchemaEdge, str] = field(default_factory=dict)
    label: Callable[[SchemaEdge], str] | None = None
    dashed: frozenset[SchemaEdge] = frozenset()
    roots: frozenset[int] = frozenset()


def draw_stages(stages: SynergyStages) -> list[GraphPicture]:
    """The stages that are graphs: schema graph, DAG, rooted trees, selected views."""
    removed = frozenset(edge for edge in stages.graph.edges if edge not in stages.dag.edges)
    roots = frozenset(stages.roots)
    of_root = {root: COLORS[i % len(COLORS)] for i, root in enumerate(stages.roots)}
    in_tree = {relation: of_root[tree.root] for tree in stages.trees for relation in tree.relations}
    tree_edges = {edge: of_root[tree.root] for tree in stages.trees for edge in tree.edges}
    view_edges = {
        edge: COLORS[i % len(COLORS)] for i, view in enumerate(stages.views) for edge in view.path
    }

    def label_weight(edge: SchemaEdge) -> str:
        return f"{stages.weight(edge):g}"

    weights = GraphStyle(label=label_weight, dashed=removed)
    trees = GraphStyle(in_tree, tree_edges, roots=roots)
    chosen = GraphStyle(edges=view_edges, roots=roots)
    return [
        GraphPicture(
            "Schema graph, with the number of overlapping joins", _draw(stages.graph, weights)
        ),
        GraphPicture("Rooted trees", _draw(stages.graph.with_edges(tree_edges), trees)),
        GraphPicture(
            "Paths of the selected views", _draw(stages.graph.with_edges(view_edges), chosen)
        ),
    ]


def _draw(graph: SchemaGraph, style: GraphStyle) -> str:
    joined = {end for edge in graph.edges for end in (edge.parent, edge.child)}
    shown = [one for one in graph.relations if one in joined or one in style.roots]
    if not shown:
        return "<p>no edges</p>"
    places, width, height = _place_nodes(graph, shown)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}"'
        f' width="{width:.0f}" height="{height:.0f}" role="img"'
        ' font-family="ui-monospace, Menlo, Consolas, monospace" font-size="12">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
        ' markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#64748b"/></marker></defs>',
        *_draw_edges(graph.edges, places, style),
        *(_draw_node(graph, one, places[one], style) for one in shown),
        "</svg>",
    ]
    return "".join(parts)


Place = tuple[float, float, float]
"""Left, top and width of a relation's box."""


def _place_nodes(graph: SchemaGraph, shown: Sequence[int]) -> tuple[dict[int, Place], float, float]:
    """Each relation below all its parents; in a layer near the middle of its parents."""
    depth = dict.fromkeys(shown, 0)
    for _ in shown:
        for edge in graph.edges:
            depth[edge.child] = max(depth[edge.child], depth[edge.parent] + 1)
    layers: dict[int, list[int]] = {}
    for one in shown:
        layers.setdefault(depth[one], []).append(one)
    widths = {one: len(graph.name_relation(one)) * CHARACTER + 24 for one in shown}
    total = max(sum(widths[one] + NODE_GAP for one in layer) for layer in layers.values())
    places: dict[int, Place] = {}
    for level in sorted(layers):
        layer = sorted(layers[level], key=lambda one: _find_middle(graph, one, places))
        left = MARGIN + (total - sum(widths[one] + NODE_GAP for one in layer)) / 2
        for one in layer:
            places[one] = (left, MARGIN + level * LAYER_GAP, widths[one])
            left += widths[one] + NODE_GAP
    height = MARGIN * 2 + max(layers) * LAYER_GAP + NODE_HEIGHT
    return places, total + 2 * MARGIN, height


def _find_middle(graph: SchemaGraph, relation: int, places: Mapping[int, Place]) -> float:
    parents = [places[e.parent] for e in graph.edges if e.child == relation and e.parent in places]
    return sum(left + width / 2 for left, _, width in parents) / len(parents) if parents else 0.0


def _draw_edges(
    edges: Sequence[SchemaEdge], places: Mapping[int, Place], style: GraphStyle
) -> list[str]:
    parts = []
    count: dict[tuple[int, int], int] = {}
    for edge in edges:
        number = count[edge.parent, edge.child] = count.get((edge.parent, edge.child), -1) + 1
        (left, top, width), (right, bottom, wide) = places[edge.parent], places[edge.child]
        x1, y1 = left + width / 2 + number * 14, top + NODE_HEIGHT
        x2, y2 = right + wide / 2 + number * 14, bottom - 2
        color = style.edges.get(edge, "#94a3b8")
        dash = ' stroke-dasharray="4 4"' if edge in style.dashed else ""
        thick = 2.4 if edge in style.edges else 1.4
        middle = (y1 + y2) / 2
        parts.append(
            f'<path d="M{x1:.1f} {y1:.1f}C{x1:.1f} {middle:.1f} {x2:.1f} {middle:.1f}'
            f' {x2:.1f} {y2:.1f}" fill="none" stroke="{color}" stroke-width="{thick}"{dash}'
            ' marker-end="url(#tip)"/>'
        )
        if style.label is not None:
            parts.append(
                f'<text x="{(x1 + x2) / 2 + 6:.1f}" y="{middle + 4:.1f}" fill="#64748b">'
                f"{escape(style.label(edge))}</text>"
            )
    return parts


def _draw_node(graph: SchemaGraph, relation: int, place: Place, style: GraphStyle) -> str:
    left, top, width = place
    color = style.nodes.get(relation, "#475569")
    filled = relation in style.roots
    fill, text = (color, "#ffffff") if filled else ("#ffffff", "#0f172a")
    return (
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{width:.1f}" height="{NODE_HEIGHT}" rx="7"'
        f' fill="{fill}" stroke="{color}" stroke-width="1.5"/>'
        f'<text x="{left + width / 2:.1f}" y="{top + NODE_HEIGHT / 2 + 4:.1f}"'
        f' text-anchor="middle" fill="{text}">{escape(graph.name_relation(relation))}</text>'
    )
