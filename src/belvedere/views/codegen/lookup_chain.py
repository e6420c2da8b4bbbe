"""Look-up chains: generated functions that compute a core's delta without a plan.

Most writes are single-row commits, and the set-up of a plan (a run, a generator for each operator)
costs more than its row. Where a core's term only looks up other rows by their complete primary key,
starting at the changed row, it is straight-line code:

    project the row, test it, get its partner by key, test both, compute the group and the amounts

A key without a partner ends the chain: nothing else is read. Everything else (index ranges,
self-joins, several changes at once, operators above) is computed by the plans of
`views.operators.linear`, which give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec import keyspace
from belvedere.codec.compile import indent
from belvedere.codec.rows import RowLayout
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.expressions.expression_source import ExpressionWriter as Texts
from belvedere.execution.python.expressions.generated_function import GeneratedFunction
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.representation import python_equal_may_differ
from belvedere.txn.contracts import Get, RowChange
from belvedere.types import Row
from belvedere.views.codegen.group_sums import AddRows, generate_group_addition_lines
from belvedere.views.codegen.state_entry import generate_group_and_amount_texts
from belvedere.views.delta.delta_plan import DeltaTerm, build_delta_terms
from belvedere.views.delta.delta_tree import DeltaTree, LinearCore
from belvedere.views.delta.linear_aggregates import AggregateGrouping
from belvedere.views.delta.linear_core import CoreLeaf, Expressions
from belvedere.views.delta.sessionless_run import make_run_without_reader

PREFIX = keyspace.ROW_PREFIX_BYTES
CACHED_ROWS_MAX = 50_000


@dataclass(frozen=True, slots=True)
class LookupStep:
    """A row fetched by its complete primary key (None: the changed row), and the condition that
    must hold then."""

    scan: n.Scan | None
    parts: tuple[paths.Part, ...]
    condition: e.Expression | None
    width: int


@dataclass(frozen=True, slots=True)
class LookupChain:
    """What changed rows of one leaf add: `add_inserted` adds up inserted rows, `add_deleted`
    deleted ones. From a row, `steps` fetch its partners, and `columns` are expressions over the
    rows of all steps. `one_to_one`: the output contains the primary key, so each base row owns its
    state row. Columns of the row that are `not_null` are never NULL."""

    project: Callable[[bytes], Row]
    layout: RowLayout
    slots: tuple[int, ...]
    add_inserted: AddRows
    add_deleted: AddRows
    varying_representation: bool
    steps: tuple[LookupStep, ...]
    columns: Expressions
    one_to_one: bool
    not_null: frozenset[int]


class LookupCache(dict[bytes, bytes | None]):
    """A cache of a reader's values by key: a partner of many rows is read once. It is emptied when
    it is full. Its `__getitem__` is a Get."""

    def __init__(self, get: Get) -> None:
        super().__init__()
        self._get = get

    def __missing__(self, key: bytes) -> bytes | None:
        if len(self) >= CACHED_ROWS_MAX:
            self.clear()
        value = self[key] = self._get(key)
        return value


class TreeLookupChains:
    """The look-up chains of a tree. `chains_by_table` are those of each table, by the prefix of its
    keys."""

    def __init__(self, catalog: Catalog, tree: DeltaTree, group: AggregateGrouping | None) -> None:
        self._catalog = catalog
        self._tree = tree
        self._group = group
        self._branches: list[frozenset[bytes]] = []  # the tables of each
        self._known: dict[frozenset[bytes], bool] = {}
        self._is_core = isinstance(tree, LinearCore)
        if isinstance(tree, LinearCore):
            self._branches = [
                frozenset(keyspace.row_prefix(x.relation) for x in b.leaves if not x.constant)
                for b in tree.branches
            ]

    @cached_property
    def chains_by_table(self) -> dict[bytes, tuple[LookupChain, ...]]:
        if not isinstance(self._tree, LinearCore):
            return {}
        return _build_chains_by_table(self._catalog, self._tree, self._group)

    @cached_property
    def driving_table(self) -> int | None:
        """The table whose rows, each by itself, give all rows of the view: it has a chain in every
        branch. None without one."""
        if not self._branches:
            return None
        everywhere = frozenset.intersection(*self._branches)
        found = sorted(prefix for prefix in everywhere if prefix in self.chains_by_table)
        return int.from_bytes(found[0][1:]) if found else None

    def covers_all_changes(self, changes: Sequence[RowChange]) -> bool:
        """Whether a chain covers every change: in no branch two tables change together."""
        return self._is_core and self.covers_changed_tables(
            frozenset([c[0][:PREFIX] for c in changes])
        )

    def covers_changed_tables(self, changed: frozenset[bytes]) -> bool:
        """The same for a set of changed tables, by their key prefixes."""
        if not self._is_core:
            return False
        found = self._known.get(changed)
        if found is None:
            found = all(
                len(tables & changed) < 2 and (tables & changed) <= self.chains_by_table.keys()
                for tables in self._branches
            )
            self._known[changed] = found
        return found


def _build_chains_by_table(
    catalog: Catalog, tree: LinearCore, group: AggregateGrouping | None
) -> dict[bytes, tuple[LookupChain, ...]]:
    """The chains by table; a table with a leaf that has no chain has none at all."""
    found: dict[int, list[LookupChain] | None] = {}
    only = len(tree.branches) == 1
    single = [
        t
        for t in build_delta_terms(tree.branches, tree.plan.fields, catalog, leaves_max=1)
        if _is_single_leaf_term(tree, t)
    ]
    for number, branch in enumerate(tree.branches):
        for at, leaf in enumerate(branch.leaves):
            if leaf.constant is not None:
                continue
            terms = [t for t in single if (t.branch, t.changed) == (number, (at,))]
            leg = _build_leaf_chain(catalog, leaf, terms[0].plan, group, only) if terms else None
            known = found.setdefault(leaf.relation, [])
            if leg is None or known is None:
                found[leaf.relation] = None
            else:
                known.append(leg)
    return {keyspace.row_prefix(r): tuple(legs) for r, legs in found.items() if legs}


def _is_single_leaf_term(tree: LinearCore, term: DeltaTerm) -> bool:
    """Whether the table of the term's one changed leaf has no other leaf in the branch."""
    relations = [leaf.relation for leaf in tree.branches[term.branch].leaves if not leaf.constant]
    changed = tree.branches[term.branch].leaves[term.changed[0]]
    return relations.count(changed.relation) == 1


def _build_leaf_chain(
    catalog: Catalog, leaf: CoreLeaf, plan: n.Node, group: AggregateGrouping | None, only: bool
) -> LookupChain | None:
    """The chain of a leaf; None where its plan is not one. `only`: the view has no other branch."""
    chain = _match_lookup_steps(plan.input) if isinstance(plan, n.Project) else None
    if chain is None or not isinstance(plan, n.Project):
        return None
    layout = compiled_table(catalog, leaf.relation).layout
    project = layout.projector(leaf.slots)
    varying = any(python_equal_may_differ(field.type) for field in leaf.fields)
    held = {leaf.slots[c.index] for c in plan.expressions if _is_changed_row_column(c, leaf)}
    sole = only and group is None and held.issuperset(catalog.table(leaf.relation).primary_key)
    table = catalog.table(leaf.relation)
    certain = frozenset(i for i, slot in enumerate(leaf.slots) if table.columns[slot].not_null)
    come, gone = _compile_chain_adders(catalog, chain, plan, group, certain)
    return LookupChain(
        project, layout, leaf.slots, come, gone, varying, tuple(chain), plan.expressions, sole,
        certain,
    )  # fmt: skip


def _is_changed_row_column(expression: e.Expression, leaf: CoreLeaf) -> TypeGuard[e.Column]:
    """Whether it is a column of the changed row, which is the first of a chain."""
    return isinstance(expression, e.Column) and expression.index < len(leaf.slots)


def _match_lookup_steps(node: n.Node) -> list[LookupStep] | None:
    match node:
        case n.Changes():
            return [LookupStep(None, (), None, len(node.fields))]
        case n.Filter(input=n.Changes() as changes):
            return [LookupStep(None, (), node.condition, len(changes.fields))]
        case n.Join(right=n.Scan(filter=None) as scan, lookup=n.Lookup() as lookup):
            below = _match_lookup_steps(node.left)
            access = lookup.access
            whole = access.index is None and access.full_key
            if (
                below is None
                or not whole
                or any(type(p) is not paths.EqualityPart for p in access.parts)
            ):
                return None
            step = LookupStep(scan, access.parts, node.residual, len(scan.fields))
            return [*below, step]
        case _:
            return None


def _compile_chain_adders(
    catalog: Catalog,
    chain: list[LookupStep],
    plan: n.Project,
    group: AggregateGrouping | None,
    certain: frozenset[int],
) -> tuple[AddRows, AddRows]:
    """The generated functions of a chain: for inserted rows, for deleted rows."""
    source = GeneratedFunction()
    texts = build_step_expression_writer(source, catalog, chain, "r")
    lines: list[str] = []
    for number, step in enumerate(chain):
        if step.scan is not None:
            lines += _generate_fetch_lines(catalog, source, texts, step, number)
        texts.row = "(" + " + ".join(f"r{i}" for i in range(number + 1)) + ")"
        if step.condition is not None:
            lines += [f"if not {texts.write_truth(step.condition)}: continue"]
    stored, amounts = generate_group_and_amount_texts(
        source, texts, group, plan.expressions, certain
    )
    lines += [f"g = {stored}"]
    body: list[str] = []
    for name, sign in (("come", "+"), ("gone", "-")):
        body += [f"def {name}(sums, rows, get):", "    known_of = sums.get", "    for r0 in rows:"]
        body += indent([*lines, *generate_group_addition_lines(amounts, sign)], 2)
    adders: tuple[AddRows, AddRows]
    adders = source.build_function("bind", [*body, "return come, gone"])(make_run_without_reader())
    return adders


def build_step_expression_writer(
    source: GeneratedFunction, catalog: Catalog, steps: Sequence[LookupStep], letter: str
) -> Texts:
    """A writer of expressions over the rows of all steps; row i is named by the letter and i."""
    starts = [sum(step.width for step in steps[:i]) for i in range(len(steps))]

    def write_column_reference(index: int) -> str:
        at = max(i for i, start in enumerate(starts) if start <= index)
        return f"{letter}{at}[{index - starts[at]}]"

    return Texts(
        source, lambda node: compile_plan(catalog, node), write_column_reference, f"{letter}0"
    )


def _generate_fetch_lines(
    catalog: Catalog, source: GeneratedFunction, texts: Texts, step: LookupStep, number: int
) -> list[str]:
    """Lines that get the row of a step by its key; a NULL in the key or no row ends the chain."""
    assert step.scan is not None
    table = compiled_table(catalog, step.scan.relation)
    encode = source.add_constant(table.key.encode, "encode")
    project = source.add_constant(table.layout.projector(step.scan.slots), "project")
    names = []
    lines = []
    for at, part in enumerate(step.parts):
        assert isinstance(part, paths.EqualityPart)
        names.append(f"k{number}_{at}")
        lines += [f"{names[-1]} = {texts.write_value(part.value)}"]
        lines += [f"if {names[-1]} is None: continue"]
    lines += [f"v = get({encode}(({', '.join(names)},)))", "if v is None: continue"]
    return [*lines, f"r{number} = {project}(v)"]
