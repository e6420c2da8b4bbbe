"""The operations of a `Many` as calls: those that can share a call do, the rest go side by side.

Gets of one table are one multi-get, puts of one table one multi-put, deletes of single versions one
multi-delete. Conditional mutations, increments and all other mutations have a call each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from belvedere.kv.cell import CellScan, CheckAndMutate, Get, Increment, Mutate, SingleRow
from belvedere.kv.cell_checks import check_changes, check_expected
from belvedere.kv.hbase import requests
from belvedere.kv.hbase.requests import GatewayCall
from belvedere.kv.hbase.tables import TableRouter

PUT_BYTES_MAX = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call, and the numbers of the operations that it answers; `shared`: with one answer for
    each."""

    call: GatewayCall
    numbers: tuple[int, ...] = ()
    shared: bool = False

    def place_answer(self, answer: Any, results: list[Any]) -> None:
        for number, each in zip(self.numbers, answer if self.shared else (answer,)):
            results[number] = each


def plan_calls(operations: Sequence[SingleRow], router: TableRouter) -> list[PlannedCall]:
    """The calls for all operations but scans, which take any number of calls. InvalidInput before
    anything is sent."""
    return [
        *_plan_single_calls(operations, router),
        *_plan_multi_gets(operations, router),
        *_plan_multi_puts(operations, router),
        *_plan_multi_deletes(operations, router),
    ]


def _plan_single_calls(
    operations: Sequence[SingleRow], router: TableRouter
) -> Iterator[PlannedCall]:
    for number, operation in enumerate(operations):
        if isinstance(operation, Get | CellScan):
            continue
        table = router.table_of(operation.row)
        match operation:
            case Increment():
                yield PlannedCall(requests.increment_call(table, operation), (number,))
            case CheckAndMutate():
                check_changes(operation.changes)
                check_expected(operation.expected)
                yield PlannedCall(requests.check_and_mutate_call(table, operation), (number,))
            case Mutate():
                check_changes(operation.changes)
                if not (requests.only_puts(operation) or requests.only_version_deletes(operation)):
                    yield PlannedCall(requests.mutate_call(table, operation), (number,))


def _plan_multi_gets(operations: Sequence[SingleRow], router: TableRouter) -> Iterator[PlannedCall]:
    by_table: dict[bytes, dict[int, Get]] = {}
    for number, operation in enumerate(operations):
        if isinstance(operation, Get):
            by_table.setdefault(router.table_of(operation.row), {})[number] = operation
    for table, gets in by_table.items():
        call = requests.multi_get_call(table, list(gets.values()))
        yield PlannedCall(call, tuple(gets), shared=True)


def _plan_multi_puts(operations: Sequence[SingleRow], router: TableRouter) -> Iterator[PlannedCall]:
    by_table: dict[bytes, list[Mutate]] = {}
    for operation in operations:
        if isinstance(operation, Mutate) and operation.changes and requests.only_puts(operation):
            by_table.setdefault(router.table_of(operation.row), []).append(operation)
    for table, mutations in by_table.items():
        for call in requests.put_calls(table, mutations, PUT_BYTES_MAX):
            yield PlannedCall(call)


def _plan_multi_deletes(
    operations: Sequence[SingleRow], router: TableRouter
) -> Iterator[PlannedCall]:
    by_table: dict[bytes, list[Mutate]] = {}
    for operation in operations:
        if (
            isinstance(operation, Mutate)
            and operation.changes
            and requests.only_version_deletes(operation)
        ):
            by_table.setdefault(router.table_of(operation.row), []).append(operation)
    for table, mutations in by_table.items():
        yield PlannedCall(requests.delete_call(table, mutations))
