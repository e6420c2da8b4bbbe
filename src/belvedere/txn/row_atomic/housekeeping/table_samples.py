"""Samples of tables that processes share: each writes its own rows, and reads those of all.

    26 relation, position, node     s: what the process made of the rows as of the position

No lock is taken, and nothing rests on them: a sample that is lost, or written twice, changes plans
at most. A process that writes one removes those that it found to be of no use any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from belvedere.errors import Unavailable
from belvedere.kv.cell import BeginWork, CellDelete, CellScan, Many, Mutate, Put, Step, value_of
from belvedere.txn.cluster import StoredSample
from belvedere.txn.row_atomic.cells import layout
from belvedere.txn.row_atomic.node import Node

RunStep = Callable[[Callable[[], Step[Any]]], Any]
"""Drives a step that may be repeated."""


class NodeSamples:
    """A `SampleExchange` (`txn.engine`)."""

    def __init__(self, run: RunStep, node: Node) -> None:
        self._run = run
        self._node = node

    def read_samples(self, relation: int) -> list[StoredSample]:
        found: list[StoredSample] = self._run(lambda: _read_samples(relation))
        return found

    def write_sample(
        self, relation: int, position: int, data: bytes, replaced: Iterable[StoredSample]
    ) -> None:
        own = layout.sample_row(relation, position, self._node.id)
        gone = [layout.sample_row(relation, each.position, each.node) for each in replaced]
        put = Mutate(own, (Put(layout.SAMPLE, layout.ONLY, data),))
        try:
            rest = [_remove_row(row) for row in gone if row != own]
            self._run(lambda: _write_rows([put, *rest]))
        except Unavailable:
            self._node.counts["samples not shared"] += 1

    def remove_samples(self, relation: int) -> None:
        """What is there of a relation that is gone."""
        found = self.read_samples(relation)
        rows = [layout.sample_row(relation, each.position, each.node) for each in found]
        if rows:
            self._run(lambda: _write_rows([_remove_row(row) for row in rows]))


def _read_samples(relation: int) -> Step[list[StoredSample]]:
    start, end = layout.sample_row(relation, 0, 0), layout.sample_row(relation + 1, 0, 0)
    found = []
    for row, cells in (yield CellScan(start, end, (layout.SAMPLE,))):
        data = value_of(cells, layout.SAMPLE)
        assert data is not None
        found.append(StoredSample(*layout.split_sample_row(row), data))
    return found


def _write_rows(mutations: Sequence[Mutate]) -> Step[None]:
    yield BeginWork()
    yield Many(tuple(mutations))


def _remove_row(row: bytes) -> Mutate:
    return Mutate(row, (CellDelete(layout.SAMPLE, layout.ONLY, exact=True),))
