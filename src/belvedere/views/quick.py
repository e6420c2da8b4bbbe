"""Look-up chains: generated functions that compute a core's delta without a plan.

Most writes are single-row commits, and the set-up of a plan (a run, a generator for each operator)
costs more than its row. Where a core's term only looks up other rows by their complete primary key,
starting at the changed row, it is straight-line code:

    project the row, test it, get its partner by key, test both, compute the group and the amounts

A key without a partner ends the chain: nothing else is read. Everything else (index ranges,
self-joins, several changes at once, operators above) is computed by the plans of
`views.operators`, which give the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeGuard

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation import compiled_table
from belvedere.codec import keyspace
from belvedere.codec.compile import indent
from belvedere.codec.rows import RowLayout
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.direct.expressions import Writer as Texts
from belvedere.execution.direct.source import Source
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.looks import python_equal_may_differ
from belvedere.txn.border import Get, RowChange
from belvedere.types import Row
from belvedere.views.core import Expressions, Leaf
from belvedere.views.delta import Term, terms_of
from belvedere.views.entry import entry_parts
from belvedere.views.linear import Group
from belvedere.views.source import nothing_run
from belvedere.views.summing import AddRows, summed
from belvedere.views.tree import Core, Tree

PREFIX = keyspace.ROW_PREFIX_BYTES
REMEMBERED_MAX = 50_000


@dataclass(frozen=True, slots=True)
class Step:
    """A row fetched by its complete primary key (None: the changed row), and the condition that
    must hold then."""

    scan: n.Scan | None
    parts: tuple[paths.Part, ...]
    condition: e.Expression | None
    width: int


@dataclass(frozen=True, slots=True)
class Leg:
    """What changed rows of one leaf add: `come` adds up inserted rows, `gone` deleted ones. From a
    row, `steps` fetch its partners, and `columns` are expressions over the rows of all steps.
    `sole`: the output contains the primary key, so each base row owns its state row. Columns of the
    row that are `certain` are never NULL."""

    project: Callable[[bytes], Row]
    layout: RowLayout
    slots: tuple[int, ...]
    come: AddRows
    gone: AddRows
    disguised: bool
    steps: tuple[Step, ...]
    columns: Expressions
    sole: bool
    certain: frozenset[int]


class Remembered(dict[bytes, bytes | None]):
    """A cache of a reader's values by key: a partner of many rows is read once. It is emptied when
    it is full. Its `__getitem__` is a Get."""

    def __init__(self, get: Get) -> None:
        super().__init__()
        self._get = get

    def __missing__(self, key: bytes) -> bytes | None:
        if len(self) >= REMEMBERED_MAX:
            self.clear()
        value = self[key] = self._get(key)
        return value


class Quick:
    """The look-up chains of a tree. `legs` are those of each table, by the prefix of its keys."""

    def __init__(self, catalog: Catalog, tree: Tree, group: Group | None) -> None:
        self._catalog = catalog
        self._tree = tree
        self._group = group
        self._branches: list[frozenset[bytes]] = []  # the tables of each
        self._known: dict[frozenset[bytes], bool] = {}
        self._whole = isinstance(tree, Core)
        if isinstance(tree, Core):
            self._branches = [
                frozenset(keyspace.row_prefix(x.relation) for x in b.leaves if not x.constant)
                for b in tree.branches
            ]

    @cached_property
    def legs(self) -> dict[bytes, tuple[Leg, ...]]:
        if not isinstance(self._tree, Core):
            return {}
        return _legs(self._catalog, self._tree, self._group)

    @property
    def driving(self) -> int | None:
        """The table whose rows, each by itself, give all rows of the view: it has a chain in every
        branch. None without one."""
        if not self._branches:
            return None
        everywhere = frozenset.intersection(*self._branches)
        found = sorted(prefix for prefix in everywhere if prefix in self.legs)
        return int.from_bytes(found[0][1:]) if found else None

    def covers(self, changes: Sequence[RowChange]) -> bool:
        """Whether a chain covers every change: in no branch two tables change together."""
        return self._whole and self.covers_tables(frozenset([c[0][:PREFIX] for c in changes]))

    def covers_tables(self, changed: frozenset[bytes]) -> bool:
        """The same for a set of changed tables, by their key prefixes."""
        if not self._whole:
            return False
        found = self._known.get(changed)
        if found is None:
            found = all(
                len(tables & changed) < 2 and (tables & changed) <= self.legs.keys()
                for tables in self._branches
            )
            self._known[changed] = found
        return found


def _legs(catalog: Catalog, tree: Core, group: Group | None) -> dict[bytes, tuple[Leg, ...]]:
    """The chains by table; a table with a leaf that has no chain has none at all."""
    found: dict[int, list[Leg] | None] = {}
    only = len(tree.branches) == 1
    single = [t for t in terms_of(tree.branches, tree.plan.fields, catalog)[0] if _single(tree, t)]
    for number, branch in enumerate(tree.branches):
        for at, leaf in enumerate(branch.leaves):
            if leaf.constant is not None:
                continue
            terms = [t for t in single if (t.branch, t.changed) == (number, (at,))]
            leg = _leg(catalog, leaf, terms[0].plan, group, only) if terms else None
            known = found.setdefault(leaf.relation, [])
            if leg is None or known is None:
                found[leaf.relation] = None
            else:
                known.append(leg)
    return {keyspace.row_prefix(r): tuple(legs) for r, legs in found.items() if legs}


def _single(tree: Core, term: Term) -> bool:
    """Whether the term's table has a single leaf in the branch, and it is the only changed one."""
    relations = [leaf.relation for leaf in tree.branches[term.branch].leaves if not leaf.constant]
    changed = tree.branches[term.branch].leaves[term.changed[0]]
    return len(term.changed) == 1 and relations.count(changed.relation) == 1


def _leg(catalog: Catalog, leaf: Leaf, plan: n.Node, group: Group | None, only: bool) -> Leg | None:
    """The chain of a leaf; None where its plan is not one. `only`: the view has no other branch."""
    chain = _chain(plan.input) if isinstance(plan, n.Project) else None
    if chain is None or not isinstance(plan, n.Project):
        return None
    layout = compiled_table(catalog, leaf.relation).layout
    project = layout.projector(leaf.slots)
    disguised = any(python_equal_may_differ(field.type) for field in leaf.fields)
    held = {leaf.slots[c.index] for c in plan.expressions if _is_of(c, leaf)}
    sole = only and group is None and held.issuperset(catalog.table(leaf.relation).primary_key)
    table = catalog.table(leaf.relation)
    certain = frozenset(i for i, slot in enumerate(leaf.slots) if table.columns[slot].not_null)
    come, gone = _adders(catalog, chain, plan, group, certain)
    return Leg(
        project, layout, leaf.slots, come, gone, disguised, tuple(chain), plan.expressions, sole,
        certain,
    )  # fmt: skip


def _is_of(expression: e.Expression, leaf: Leaf) -> TypeGuard[e.Column]:
    """Whether it is a column of the changed row, which is the first of a chain."""
    return isinstance(expression, e.Column) and expression.index < len(leaf.slots)


def _chain(node: n.Node) -> list[Step] | None:
    match node:
        case n.Changes():
            return [Step(None, (), None, len(node.fields))]
        case n.Filter(input=n.Changes() as changes):
            return [Step(None, (), node.condition, len(changes.fields))]
        case n.Join(right=n.Scan(filter=None) as scan, lookup=n.Lookup() as lookup):
            below = _chain(node.left)
            access = lookup.access
            whole = access.index is None and access.whole
            if (
                below is None
                or not whole
                or any(type(p) is not paths.OnePart for p in access.parts)
            ):
                return None
            step = Step(scan, access.parts, node.residual, len(scan.fields))
            return [*below, step]
        case _:
            return None


def _adders(
    catalog: Catalog,
    chain: list[Step],
    plan: n.Project,
    group: Group | None,
    certain: frozenset[int],
) -> tuple[AddRows, AddRows]:
    """The generated functions of a chain: for inserted rows, for deleted rows."""
    source = Source()
    texts = step_texts(source, catalog, chain, "r")
    lines: list[str] = []
    for number, step in enumerate(chain):
        if step.scan is not None:
            lines += _fetch(catalog, source, texts, step, number)
        texts.row = "(" + " + ".join(f"r{i}" for i in range(number + 1)) + ")"
        if step.condition is not None:
            lines += [f"if not {texts.truth(step.condition)}: continue"]
    stored, amounts = entry_parts(source, texts, group, plan.expressions, certain)
    lines += [f"g = {stored}"]
    body: list[str] = []
    for name, sign in (("come", "+"), ("gone", "-")):
        body += [f"def {name}(sums, rows, get):", "    known_of = sums.get", "    for r0 in rows:"]
        body += indent([*lines, *summed(amounts, sign)], 2)
    adders: tuple[AddRows, AddRows]
    adders = source.function("bind", [*body, "return come, gone"])(nothing_run())
    return adders


def step_texts(source: Source, catalog: Catalog, steps: Sequence[Step], letter: str) -> Texts:
    """A writer of expressions over the rows of all steps; row i is named by the letter and i."""
    starts = [sum(step.width for step in steps[:i]) for i in range(len(steps))]

    def column(index: int) -> str:
        at = max(i for i, start in enumerate(starts) if start <= index)
        return f"{letter}{at}[{index - starts[at]}]"

    return Texts(source, lambda node: compile_plan(catalog, node), column, f"{letter}0")


def _fetch(catalog: Catalog, source: Source, texts: Texts, step: Step, number: int) -> list[str]:
    """Lines that get the row of a step by its key; a NULL in the key or no row ends the chain."""
    assert step.scan is not None
    table = compiled_table(catalog, step.scan.relation)
    encode = source.constant(table.key.encode, "encode")
    project = source.constant(table.layout.projector(step.scan.slots), "project")
    names = []
    lines = []
    for at, part in enumerate(step.parts):
        assert isinstance(part, paths.OnePart)
        names.append(f"k{number}_{at}")
        lines += [f"{names[-1]} = {texts.value(part.value)}"]
        lines += [f"if {names[-1]} is None: continue"]
    lines += [f"v = get({encode}(({', '.join(names)},)))", "if v is None: continue"]
    return [*lines, f"r{number} = {project}(v)"]
