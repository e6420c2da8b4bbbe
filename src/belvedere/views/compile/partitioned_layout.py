"""The partitioned layout of views (`placement = 'local'`): one entry for each partition of the base
table, combined on read.

Every entry has the number of the partition of its base row before its own columns, so that a change
touches one partition only; a reader adds up the entries of all partitions. Only additive state of
one table can be stored like this: linear aggregates, and rows.

    SELECT city, count(*) FROM people GROUP BY city         people has 4 partitions

    state     (partition, city) | rows, count               up to 4 entries a city
    reading   sum of the amounts by city

Over a materialized view, whose rows are partitioned by their own key, a group is in one partition:
such an aggregate is stored by its group only (`compile_view`).
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from belvedere.catalog.catalog import Catalog
from belvedere.codec import keyspace
from belvedere.codec.keys import KeyCodec, KeyColumn
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.plan.fields import Field, Fields
from belvedere.plan.functions.core.function import Accumulator, Function, FunctionKind
from belvedere.types import INTEGER, Row
from belvedere.views.delta.delta_tree import DeltaTree, LinearCore
from belvedere.views.delta.linear_aggregates import AMOUNT_TYPE
from belvedere.views.delta.linear_core import CoreBranch, Expressions, unsupported_construct_error
from belvedere.views.delta.normalize import output_columns

PARTITION = Field("partition", INTEGER)


def add_partition_column(catalog: Catalog, tree: DeltaTree) -> LinearCore:
    """The tree with the partition number of each row before its columns; Unsupported where its rows
    are of more than one table."""
    if not isinstance(tree, LinearCore):
        raise unsupported_construct_error(
            "placement = 'local'", "what is not linear does not add up over partitions"
        )
    branches = tuple(_add_branch_partition_column(catalog, branch) for branch in tree.branches)
    if len({branch.leaves[0].relation for branch in branches}) > 1:
        raise unsupported_construct_error(
            "placement = 'local'", "its tables are partitioned by different keys"
        )
    fields = (PARTITION, *tree.plan.fields)
    plan = _build_branch_plan(branches[0], fields)
    for branch in branches[1:]:
        plan = n.SetOperation(n.SetKind.UNION, True, plan, _build_branch_plan(branch, fields))
    return LinearCore(branches, plan)


def _add_branch_partition_column(catalog: Catalog, branch: CoreBranch) -> CoreBranch:
    if len(branch.leaves) != 1 or branch.leaves[0].constant is not None:
        raise unsupported_construct_error(
            "placement = 'local'", "rows of a join are in no partition of either table"
        )
    (leaf,) = branch.leaves
    table = catalog.table(leaf.relation)
    added = [slot for slot in table.primary_key if slot not in leaf.slots]
    more = tuple(Field(table.columns[slot].name, table.columns[slot].type) for slot in added)
    wide = replace(leaf, slots=(*leaf.slots, *added), fields=leaf.fields + more)
    key = tuple(
        e.Column(wide.slots.index(slot), table.columns[slot].type, table.columns[slot].name)
        for slot in table.primary_key
    )
    number = e.Call(_build_partition_function(catalog, leaf.relation), key, INTEGER)
    return CoreBranch((wide,), branch.conditions, (number, *branch.columns))


@dataclass(frozen=True)
class PartitionFunction:
    """The partition of a row, from its primary key. Pickles: other processes call it too."""

    columns: tuple[KeyColumn, ...]
    prefix: bytes
    partitions: int

    @cached_property
    def _key_encoder(self) -> Callable[[Row], bytes]:
        return KeyCodec(self.columns, self.prefix).encode

    def __call__(self, *key: Any) -> int:
        return zlib.crc32(self._key_encoder(key)) % self.partitions

    def __reduce__(self) -> tuple[type[PartitionFunction], tuple[Any, ...]]:
        return PartitionFunction, (self.columns, self.prefix, self.partitions)


def _build_partition_function(catalog: Catalog, relation: int) -> Function:
    table = catalog.table(relation)
    types = tuple(table.columns[slot].type for slot in table.primary_key)
    columns = tuple(map(KeyColumn, types))
    number = PartitionFunction(columns, keyspace.row_prefix(relation), max(table.partitions, 1))
    return Function("partition of", types, INTEGER, number, strict=False)


def _build_branch_plan(branch: CoreBranch, fields: Fields) -> n.Node:
    (leaf,) = branch.leaves
    scan = n.Scan(leaf.relation, leaf.name, leaf.slots, leaf.fields)
    condition = transform.conjunction(list(branch.conditions))
    below: n.Node = scan if condition is None else n.Filter(scan, condition)
    return n.Project(below, branch.columns, fields)


def shift_past_partition_column(expressions: Expressions) -> Expressions:
    """Expressions over the tree's row as ones over the row with the partition before it."""
    return tuple(transform.shift_columns(one, 1) for one in expressions)


_SUM_OF_AMOUNTS = Function(
    "total of amounts",
    (AMOUNT_TYPE,),
    AMOUNT_TYPE,
    Accumulator(lambda: 0, lambda total, amount: total + amount, lambda total: total),
    kind=FunctionKind.AGGREGATE,
)


def make_partition_sum_plan_builder(
    scan: Callable[[int], n.Scan], columns: int
) -> Callable[[int], n.Node]:
    """The state with its partitions added up: `columns` of its own, then the amounts."""

    def build_sum_plan(view: int) -> n.Node:
        state = scan(view)
        found = output_columns(state)
        calls = tuple(
            e.AggregateCall(_SUM_OF_AMOUNTS, (amount,), AMOUNT_TYPE)
            for amount in found[1 + columns :]
        )
        return n.Aggregate(state, found[1 : 1 + columns], calls, state.fields[1:])

    return build_sum_plan
