"""The shape of a join view: leaves, conditions and columns in order; its text and its name."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from belvedere.advisor.candidates.candidate import Candidate, CandidateKind
from belvedere.advisor.candidates.definition_text import (
    ConditionWriter,
    ViewLeaves,
    name_view_columns,
    write_select_item,
)
from belvedere.advisor.workload.join_block import Equality, JoinBlock, LeafColumn
from belvedere.plan import expressions as e
from belvedere.plan import transform

NAME_MAX = 55
"""Characters of a name before the part that tells views of the same tables apart."""


@dataclass(frozen=True, slots=True)
class JoinShape:
    """`filters` are conditions as text; `key` columns come first in the view, then `others`.
    `order`: the rows are stored in this order of the first columns, not ascending."""

    leaves: ViewLeaves
    equalities: tuple[Equality, ...]
    filters: tuple[str, ...]
    key: tuple[LeafColumn, ...]
    others: tuple[LeafColumn, ...]
    order: tuple[tuple[LeafColumn, e.SortKey | None], ...] = ()

    @property
    def columns(self) -> tuple[LeafColumn, ...]:
        return tuple(dict.fromkeys((*self.key, *self.others)))

    @property
    def core(self) -> tuple[object, ...]:
        """Shapes with the same core join the same rows."""
        joins = frozenset(frozenset((one.left, one.right)) for one in self.equalities)
        return (self.leaves.relations, joins, frozenset(self.filters))

    def write_where(self) -> str:
        conditions = [
            f"{self.leaves.write_column(one.left)} = {self.leaves.write_column(one.right)}"
            for one in self.equalities
        ]
        conditions += self.filters
        return f" WHERE {' AND '.join(conditions)}" if conditions else ""

    def write_definition(self) -> str:
        names = name_view_columns(self.leaves, self.columns)
        items = [write_select_item(self.leaves, column, names[column]) for column in self.columns]
        order = ", ".join(self._write_sort_key(*one) for one in self.order)
        ordered = f"\n  ORDER BY {order}" if order else ""
        source = f"{self.leaves.write_from()}{self.write_where()}"
        return f"SELECT {', '.join(items)}\n  FROM {source}{ordered}"

    def _write_sort_key(self, column: LeafColumn, key: e.SortKey | None) -> str:
        written = self.leaves.write_column(column)
        if key is None:
            return written
        text = f"{written} DESC" if key.descending else written
        if key.nulls_first != key.descending:
            text += " NULLS FIRST" if key.nulls_first else " NULLS LAST"
        return text

    def make_candidate(self, kind: CandidateKind, queries: Iterable[str]) -> Candidate:
        names = name_view_columns(self.leaves, self.columns)
        definition = self.write_definition()
        return Candidate(
            name_view(self.leaves, [names[column] for column in self.key], definition),
            kind,
            frozenset(self.leaves.relations),
            definition,
            key=tuple(names[column] for column in self.key),
            queries=frozenset(queries),
        )


def name_view(leaves: ViewLeaves, key: Sequence[str], definition: str) -> str:
    """A name that says what the view joins and by what it is ordered; the same definition always
    has the same name."""
    tables = "_".join(dict.fromkeys(leaves.table(one).name for one in leaves.relations))
    name = f"{tables}_by_{'_'.join(key[:2])}" if key else tables
    digest = hashlib.sha256(definition.encode()).hexdigest()[:4]
    return f"{name[:NAME_MAX]}_{digest}"


def list_primary_keys(leaves: ViewLeaves) -> list[LeafColumn]:
    """The primary keys of all leaves: with them no row of the view stands for two."""
    return [
        LeafColumn(number, slot)
        for number, relation in enumerate(leaves.relations)
        for slot in leaves.table(relation).primary_key
        if not leaves.table(relation).columns[slot].hidden
    ]


def make_writer(leaves: ViewLeaves, block: JoinBlock) -> ConditionWriter:
    return ConditionWriter(leaves, block.find_leaf_column)


def list_expression_columns(
    block: JoinBlock, expressions: Iterable[e.Expression]
) -> list[LeafColumn]:
    """The columns of tables that the expressions read, also inside their sub-queries."""
    found = dict[LeafColumn, None]()
    for expression in expressions:
        for index in sorted(transform.columns_of(expression)):
            column = block.find_leaf_column(index)
            if column is not None:
                found[column] = None
    return list(found)
