"""Lowering of a view's delta plan to DataFrames: the delta of its tree over a range of the log.

Every frame here has inserted rows with weight 1 and deleted rows with weight -1; the weight is the
last column.

    LinearCore      the terms of the delta plan (`views.delta.delta_plan`), table after table:
                    changed rows from the log, conditions and expressions by Spark, one exchange by
                    the key of each look-up, the partners from the store, conditions and expressions
                    by Spark
    Map             by Spark
    Union           by Spark
    Recompute       keys of changed rows by Spark, one exchange by them; in the task that owns a key
                    the engine's operator reads the key's rows at both ends and recomputes its
                    result
    Apply           changed rows of both sides, exchanged by the key they match by; in the task that
                    owns a key the engine's operator looks up the rows it needs
    FullRecompute   NotNative: it has no delta

Tables of a join change one after the other: the terms of a table see the tables before it at the
end of the range, and the table itself and those after it at the start. So no term has changes of
two tables:

    d(A x B)  =  dA x B at the start  +  A at the end x dB

All state is in the store; a task reads it from a checkpoint (`pipeline.store.log_range_state`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import functions as f

from belvedere.catalog.catalog import Catalog, empty_catalog
from belvedere.execution.spark.dataframes import TypedFrame, schema_of
from belvedere.execution.spark.lower import SparkLowering, all_columns
from belvedere.execution.spark.types import NotNative, SparkExpression
from belvedere.pipeline.maintain.task_operators import (
    ApplyOperatorTask,
    LookupJoinTask,
    LookupTarget,
    RecomputeOperatorTask,
    TreePath,
    extract_lookup_key_values,
)
from belvedere.pipeline.store.log_changes import ChangeFrames
from belvedere.pipeline.store.log_range_state import LogRangeState
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.types import BIGINT
from belvedere.views.delta.delta_plan import (
    DeltaTerm,
    build_delta_terms,
    changes_leaf_id,
)
from belvedere.views.delta.delta_tree import (
    Apply,
    DeltaTree,
    LinearCore,
    Map,
    Recompute,
    Union,
    child_trees,
    collect_relations,
)

ONCE = SparkExpression("CAST(1 AS bigint)", BIGINT)


def refuse_table_scan(scan: n.Scan) -> TypedFrame:
    """Raise NotNative: a delta scans a full table only where no key or index finds the rows."""
    raise NotNative(f"all rows of {scan.name} are looked at")


def group_delta_terms_by_table(
    tree: LinearCore, catalog: Catalog
) -> Iterator[tuple[int, list[DeltaTerm]]]:
    """The terms of each table's changes, in the order in which tables change."""
    terms = build_delta_terms(tree.branches, tree.plan.fields, catalog)
    for relation in sorted(collect_relations(tree)):
        yield (
            relation,
            [term for term in terms if _list_changed_relations(tree, term) == {relation}],
        )


def _list_changed_relations(tree: LinearCore, term: DeltaTerm) -> set[int]:
    return {tree.branches[term.branch].leaves[number].relation for number in term.changed}


def collect_slots_of_changed_rows(
    trees: list[DeltaTree], catalog: Catalog, changed: frozenset[int]
) -> dict[int, list[tuple[int, ...]]]:
    """The slots of each request for a table's changed rows, by table, one entry a request."""
    found: dict[int, list[tuple[int, ...]]] = {}
    while trees:
        tree, *trees = trees
        trees += child_trees(tree)
        if isinstance(tree, LinearCore):
            for relation, terms in group_delta_terms_by_table(tree, catalog):
                for term in terms if relation in changed else []:
                    leaves = tree.branches[term.branch].leaves
                    found.setdefault(relation, []).extend(leaves[i].slots for i in term.changed)
    return found


@dataclass(slots=True)
class DeltaLowering(SparkLowering):
    """Lowers the delta of one view. `range_state` is None where no term looks up rows, or where the
    delta is only explained. `terms` are the lowered terms of each core, by the core's `id()`."""

    changes: ChangeFrames | None = None
    catalog: Catalog = field(default_factory=empty_catalog)
    view: int = 0
    changed: frozenset[int] = frozenset()
    tasks: int = 1
    range_state: LogRangeState | None = None
    terms: dict[int, list[tuple[int, DeltaTerm]]] = field(default_factory=dict)
    _step: tuple[int, LinearCore, DeltaTerm] | None = None

    def lower_delta_tree(self, tree: DeltaTree, place: TreePath = ()) -> TypedFrame | None:
        """The delta of the tree; None where none of its tables changed."""
        if not self.changed & set(collect_relations(tree)):
            return None
        match tree:
            case LinearCore():
                return self.lower_linear_core(tree)
            case Map():
                below = self.lower_delta_tree(tree.input, (*place, 0))
                return None if below is None else self.lower_map_over_frame(below, tree.plan)
            case Union():
                sides = [
                    self.lower_delta_tree(one, (*place, i))
                    for i, one in enumerate(child_trees(tree))
                ]
                return self.union_delta_frames([one for one in sides if one is not None])
            case Recompute():
                return self.lower_recompute_operator(tree, place)
            case Apply():
                return self.lower_apply_operator(tree, place)
            case _:
                raise NotNative("it is computed again as a whole")

    def union_delta_frames(self, frames: list[TypedFrame]) -> TypedFrame | None:
        def union_pair(one: TypedFrame, other: TypedFrame) -> TypedFrame:
            left, right = self.align_types(one, other)
            return replace(left, data=left.data.union(right.data))

        return reduce(union_pair, frames) if frames else None

    # -- linear parts -------------------------------------------------------------------------

    def lower_linear_core(self, tree: LinearCore) -> TypedFrame | None:
        found = []
        for relation, terms in group_delta_terms_by_table(tree, self.catalog):
            for term in terms if relation in self.changed else ():
                self._step = (relation, tree, term)
                self.terms.setdefault(id(tree), []).append((relation, term))
                found.append(self.lower_node(term.plan))
        return self.union_delta_frames(found)

    def dispatch_node(self, node: n.Node) -> TypedFrame:
        match node:
            case n.Changes():
                return self.lower_changes_leaf(node)
            case n.Filter() | n.Project():
                return self.lower_filter_or_project(self.lower_node(node.input), node)
            case n.Join(right=n.Scan() as scan, lookup=n.Lookup() as lookup):
                return self.lower_lookup_join(node, LookupTarget(scan, lookup.access))
            case n.Join(kind=n.JoinKind.INNER, lateral=False):
                return self.lower_join_of_changes(node)
            case n.Values() | n.TableFunction():
                rows = self.lower_constant_rows(node)
                return self.frames.select_columns(rows.data, [*rows.columns, ONCE])
            case n.Scan():
                return self.read_scan(node)
            case _:
                raise NotNative(f"{type(node).__name__} in a term")

    def lower_changes_leaf(self, node: n.Changes) -> TypedFrame:
        assert self._step is not None, "a term is in the making"
        assert self.changes is not None
        _, tree, term = self._step
        leaves = tree.branches[term.branch].leaves
        (leaf,) = [leaves[i] for i in term.changed if changes_leaf_id(i) == node.relation]
        return self.frames.rename_columns(
            self.changes.build_changed_rows_frame(leaf.relation, leaf.slots)
        )

    def lower_map_over_frame(self, below: TypedFrame, node: n.Filter | n.Project) -> TypedFrame:
        """Lower a node over an input that is not part of its plan."""
        self._nodes.append(node)
        self.report.notes_by_node.setdefault(id(node), [])
        try:
            return self.lower_filter_or_project(below, node)
        finally:
            self._nodes.pop()

    def lower_filter_or_project(self, below: TypedFrame, node: n.Filter | n.Project) -> TypedFrame:
        if any(map(transform.has_subplan, transform.own_expressions(node))):
            raise NotNative("a sub-query")
        if isinstance(node, n.Filter):
            return self.filter_frame(below, node.condition)
        made, columns = self.lower_columns(below, node.expressions)
        return self.frames.select_columns(made.data, [*columns, below.columns[-1]])

    def lower_lookup_join(self, node: n.Join, partners: LookupTarget) -> TypedFrame:
        """Join rows with their partners by look-up, after an exchange by the key, so that one task
        has all rows of a key and looks it up once."""
        left = self.lower_node(node.left)
        values, access = extract_lookup_key_values(partners.access)
        made, keys = self.lower_columns(left, values)
        keyed = self.frames.select_columns(made.data, [*left.columns, *keys])
        width, scan = len(left.names) - 1, partners.scan
        types = (*left.types[:-1], *(one.type for one in scan.fields), BIGINT)
        names = self.frames.new_names(len(types))
        data = keyed.data
        if keys:
            data = data.repartition(self.tasks, *keyed.names[width + 1 :])
        key_types = tuple(one.type for one in values)
        if keyed.types[width + 1 :] != key_types:
            raise NotNative("a key of other bounds")
        at_end = self._step is not None and scan.relation < self._step[0]
        step = LookupJoinTask(
            self.range_state, LookupTarget(scan, access), at_end, width, key_types, names
        )
        found = TypedFrame(data.mapInArrow(step, schema_of(names, types)), names, types)
        return found if node.residual is None else self.filter_frame(found, node.residual)

    def lower_join_of_changes(self, node: n.Join) -> TypedFrame:
        """Join changed rows with changed rows of the same table, or with constants."""
        left, right, widths, parts = self.lower_join_inputs(node)
        weighted = widths[0] - 1, widths[1] - 1  # the last of each is the weight
        data = left.data.join(right.data, f.expr(" AND ".join(parts) or "TRUE"), "inner")
        both = left.columns[: weighted[0]] + right.columns[: weighted[1]]
        weights = left.columns[weighted[0]].text, right.columns[weighted[1]].text
        found = self.frames.select_columns(
            data, [*both, SparkExpression(f"({' * '.join(weights)})", BIGINT)]
        )
        return found if node.residual is None else self.filter_frame(found, node.residual)

    # -- operators over state -----------------------------------------------------------------

    def lower_recompute_operator(self, tree: Recompute, place: TreePath) -> TypedFrame | None:
        touched = []
        for number, one in enumerate(tree.inputs):
            below = self.lower_delta_tree(one.tree, (*place, number))
            if below is not None:
                made, columns = self.lower_columns(below, one.keys)
                touched.append(self.frames.select_columns(made.data, columns))
        keys = self.union_delta_frames(touched)
        assert keys is not None, "one of its tables changed"
        if not keys.names:
            data, sides = self.frames.gather_rows([keys])
        else:
            data, sides = self.frames.exchange_by_key([keys], [all_columns(keys.types)])
        types = (*self.frames.carrier_types(tuple(one.type for one in tree.plan.fields)), BIGINT)
        names = self.frames.new_names(len(types))
        step = RecomputeOperatorTask(self.range_state, self.view, place, sides[0], types, names)
        return TypedFrame(data.mapInArrow(step, schema_of(names, types)), names, types)

    def lower_apply_operator(self, tree: Apply, place: TreePath) -> TypedFrame | None:
        inputs = []
        for number, one in enumerate(child_trees(tree)):
            below = self.lower_delta_tree(one, (*place, number))
            inputs.append(below if below is not None else self.create_empty_delta_frame(one))
        keys = [tree.rights[0].left_keys, tree.rights[0].keys] if tree.rights else []
        if len(inputs) == 2 and keys[0]:
            data, sides = self.frames.exchange_by_key(inputs, keys)
        else:
            data, sides = self.frames.gather_rows(inputs)
        types = (*self.frames.carrier_types(tuple(one.type for one in tree.plan.fields)), BIGINT)
        names = self.frames.new_names(len(types))
        step = ApplyOperatorTask(self.range_state, self.view, place, sides, types, names)
        return TypedFrame(data.mapInArrow(step, schema_of(names, types)), names, types)

    def create_empty_delta_frame(self, tree: DeltaTree) -> TypedFrame:
        """The delta of an input that did not change."""
        types = (*(one.type for one in tree.plan.fields), BIGINT)
        return self.frames.local_frame([], types)
