"""Lowering of a view's delta plan to DataFrames: the delta of its tree over a range of the log.

Every frame here has inserted rows with weight 1 and deleted rows with weight -1; the weight is the
last column.

    Core        the terms of the delta plan (`views.delta`), table after table: changed rows from
                the log, conditions and expressions by Spark, one exchange by the key of each
                look-up, the partners from the store, conditions and expressions by Spark
    Map         by Spark
    Union       by Spark
    Recompute   keys of changed rows by Spark, one exchange by them; in the task that owns a key
                the engine's operator reads the key's rows at both ends and recomputes its result
    Apply       changed rows of both sides, exchanged by the key they match by; in the task that
                owns a key the engine's operator looks up the rows it needs
    Whole       NotNative: it has no delta

Tables of a join change one after the other: the terms of a table see the tables before it at the
end of the range, and the table itself and those after it at the start. So no term has changes of
two tables:

    d(A x B)  =  dA x B at the start  +  A at the end x dB

All state is in the store; a task reads it from a checkpoint (`pipeline.held`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import reduce

from pyspark.sql import functions as f

from belvedere.catalog.catalog import Catalog, empty
from belvedere.execution.spark.frames import Frame, schema_of
from belvedere.execution.spark.lower import Lowering, all_columns
from belvedere.execution.spark.types import NotNative, Typed
from belvedere.pipeline.held import Held
from belvedere.pipeline.logged import Changes
from belvedere.pipeline.looking import Applied, LookUp, Partners, Place, Redone, on_keys
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.types import BIGINT
from belvedere.views.delta import Term, changes_leaf, terms_of
from belvedere.views.tree import Apply, Core, Map, Recompute, Tree, Union, children, inputs_of

ONCE = Typed("CAST(1 AS bigint)", BIGINT)


def no_tables(scan: n.Scan) -> Frame:
    """Raise NotNative: a delta scans a full table only where no key or index finds the rows."""
    raise NotNative(f"all rows of {scan.name} are looked at")


def terms_by_table(tree: Core, catalog: Catalog) -> Iterator[tuple[int, list[Term]]]:
    """The terms of each table's changes, in the order in which tables change."""
    terms, _ = terms_of(tree.branches, tree.plan.fields, catalog)
    for relation in sorted(inputs_of(tree)):
        yield relation, [term for term in terms if _relations(tree, term) == {relation}]


def _relations(tree: Core, term: Term) -> set[int]:
    return {tree.branches[term.branch].leaves[number].relation for number in term.changed}


def wanted_slots(
    trees: list[Tree], catalog: Catalog, changed: frozenset[int]
) -> dict[int, list[tuple[int, ...]]]:
    """The slots of each request for a table's changed rows, by table, one entry a request."""
    found: dict[int, list[tuple[int, ...]]] = {}
    while trees:
        tree, *trees = trees
        trees += children(tree)
        if isinstance(tree, Core):
            for relation, terms in terms_by_table(tree, catalog):
                for term in terms if relation in changed else []:
                    leaves = tree.branches[term.branch].leaves
                    found.setdefault(relation, []).extend(leaves[i].slots for i in term.changed)
    return found


@dataclass(slots=True)
class DeltaFrames(Lowering):
    """Lowers the delta of one view. `held` is None where no term looks up rows, or where the delta
    is only explained. `terms` are the lowered terms of each core, by the core's `id()`."""

    changes: Changes | None = None
    catalog: Catalog = field(default_factory=empty)
    view: int = 0
    changed: frozenset[int] = frozenset()
    tasks: int = 1
    held: Held | None = None
    terms: dict[int, list[tuple[int, Term]]] = field(default_factory=dict)
    _step: tuple[int, Core, Term] | None = None

    def delta(self, tree: Tree, place: Place = ()) -> Frame | None:
        """The delta of the tree; None where none of its tables changed."""
        if not self.changed & set(inputs_of(tree)):
            return None
        match tree:
            case Core():
                return self.core(tree)
            case Map():
                below = self.delta(tree.input, (*place, 0))
                return None if below is None else self.mapped(below, tree.plan)
            case Union():
                sides = [self.delta(one, (*place, i)) for i, one in enumerate(children(tree))]
                return self.together([one for one in sides if one is not None])
            case Recompute():
                return self.recomputed(tree, place)
            case Apply():
                return self.applied(tree, place)
            case _:
                raise NotNative("it is computed again as a whole")

    def together(self, frames: list[Frame]) -> Frame | None:
        def union(one: Frame, other: Frame) -> Frame:
            left, right = self.aligned(one, other)
            return replace(left, data=left.data.union(right.data))

        return reduce(union, frames) if frames else None

    # -- linear parts -------------------------------------------------------------------------

    def core(self, tree: Core) -> Frame | None:
        found = []
        for relation, terms in terms_by_table(tree, self.catalog):
            for term in terms if relation in self.changed else ():
                self._step = (relation, tree, term)
                self.terms.setdefault(id(tree), []).append((relation, term))
                found.append(self.frame(term.plan))
        return self.together(found)

    def lowered_node(self, node: n.Node) -> Frame:
        match node:
            case n.Changes():
                return self.changed_rows(node)
            case n.Filter() | n.Project():
                return self.over(self.frame(node.input), node)
            case n.Join(right=n.Scan() as scan, lookup=n.Lookup() as lookup):
                return self.looked_up(node, Partners(scan, lookup.access))
            case n.Join(kind=n.JoinKind.INNER, lateral=False):
                return self.met(node)
            case n.Values() | n.TableFunction():
                rows = self.local(node)
                return self.frames.selected(rows.data, [*rows.columns, ONCE])
            case n.Scan():
                return self.leaf(node)
            case _:
                raise NotNative(f"{type(node).__name__} in a term")

    def changed_rows(self, node: n.Changes) -> Frame:
        assert self._step is not None, "a term is in the making"
        assert self.changes is not None
        _, tree, term = self._step
        leaves = tree.branches[term.branch].leaves
        (leaf,) = [leaves[i] for i in term.changed if changes_leaf(i) == node.relation]
        return self.frames.fresh(self.changes.frame(leaf.relation, leaf.slots))

    def mapped(self, below: Frame, node: n.Filter | n.Project) -> Frame:
        """Lower a node over an input that is not part of its plan."""
        self._nodes.append(node)
        self.report.ways.setdefault(id(node), [])
        try:
            return self.over(below, node)
        finally:
            self._nodes.pop()

    def over(self, below: Frame, node: n.Filter | n.Project) -> Frame:
        if any(map(transform.has_subplan, transform.own_expressions(node))):
            raise NotNative("a sub-query")
        if isinstance(node, n.Filter):
            return self.filtered(below, node.condition)
        made, columns = self.columns(below, node.expressions)
        return self.frames.selected(made.data, [*columns, below.columns[-1]])

    def looked_up(self, node: n.Join, partners: Partners) -> Frame:
        """Join rows with their partners by look-up, after an exchange by the key, so that one task
        has all rows of a key and looks it up once."""
        left = self.frame(node.left)
        values, access = on_keys(partners.access)
        made, keys = self.columns(left, values)
        keyed = self.frames.selected(made.data, [*left.columns, *keys])
        width, scan = len(left.names) - 1, partners.scan
        types = (*left.types[:-1], *(one.type for one in scan.fields), BIGINT)
        names = self.frames.names(len(types))
        data = keyed.data
        if keys:
            data = data.repartition(self.tasks, *keyed.names[width + 1 :])
        key_types = tuple(one.type for one in values)
        if keyed.types[width + 1 :] != key_types:
            raise NotNative("a key of other bounds")
        at_end = self._step is not None and scan.relation < self._step[0]
        step = LookUp(self.held, Partners(scan, access), at_end, width, key_types, names)
        found = Frame(data.mapInArrow(step, schema_of(names, types)), names, types)
        return found if node.residual is None else self.filtered(found, node.residual)

    def met(self, node: n.Join) -> Frame:
        """Join changed rows with changed rows of the same table, or with constants."""
        left, right, widths, parts = self.sides_of(node)
        weighted = widths[0] - 1, widths[1] - 1  # the last of each is the weight
        data = left.data.join(right.data, f.expr(" AND ".join(parts) or "TRUE"), "inner")
        both = left.columns[: weighted[0]] + right.columns[: weighted[1]]
        weights = left.columns[weighted[0]].text, right.columns[weighted[1]].text
        found = self.frames.selected(data, [*both, Typed(f"({' * '.join(weights)})", BIGINT)])
        return found if node.residual is None else self.filtered(found, node.residual)

    # -- operators over state -----------------------------------------------------------------

    def recomputed(self, tree: Recompute, place: Place) -> Frame | None:
        touched = []
        for number, one in enumerate(tree.inputs):
            below = self.delta(one.tree, (*place, number))
            if below is not None:
                made, columns = self.columns(below, one.keys)
                touched.append(self.frames.selected(made.data, columns))
        keys = self.together(touched)
        assert keys is not None, "one of its tables changed"
        if not keys.names:
            data, sides = self.frames.gathered([keys])
        else:
            data, sides = self.frames.exchanged([keys], [all_columns(keys.types)])
        types = (*self.frames.carried(tuple(one.type for one in tree.plan.fields)), BIGINT)
        names = self.frames.names(len(types))
        step = Redone(self.held, self.view, place, sides[0], types, names)
        return Frame(data.mapInArrow(step, schema_of(names, types)), names, types)

    def applied(self, tree: Apply, place: Place) -> Frame | None:
        inputs = []
        for number, one in enumerate(children(tree)):
            below = self.delta(one, (*place, number))
            inputs.append(below if below is not None else self.nothing(one))
        keys = [tree.rights[0].left_keys, tree.rights[0].keys] if tree.rights else []
        if len(inputs) == 2 and keys[0]:
            data, sides = self.frames.exchanged(inputs, keys)
        else:
            data, sides = self.frames.gathered(inputs)
        types = (*self.frames.carried(tuple(one.type for one in tree.plan.fields)), BIGINT)
        names = self.frames.names(len(types))
        step = Applied(self.held, self.view, place, sides, types, names)
        return Frame(data.mapInArrow(step, schema_of(names, types)), names, types)

    def nothing(self, tree: Tree) -> Frame:
        """The delta of an input that did not change."""
        types = (*(one.type for one in tree.plan.fields), BIGINT)
        return self.frames.local([], types)
