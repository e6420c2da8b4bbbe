"""The delta operator of full recomputation (`strict = false`): recursion, volatile functions.

At a change of any of its tables it evaluates the definition after the change, and the delta is the
difference to the stored rows: values that depend on more than rows cannot be computed a second
time.

State: the view's rows. Cost of a change: the complete query, and a scan of the view.
"""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Iterator

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import compiled_view
from belvedere.codec import accumulator
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import row_keys
from belvedere.plan.functions.core.function import Environment
from belvedere.txn.contracts import Reader
from belvedere.types import Row
from belvedere.views.delta.delta_tree import FullRecompute
from belvedere.views.delta.linear_core import Expressions
from belvedere.views.delta.sessionless_run import make_run_with_reader
from belvedere.views.operators.operator import (
    DeltaStep,
    KeyLookup,
    WeightedRows,
    build_full_scan_lookup,
)


class FullRecomputeOperator:
    reads_state = True

    def __init__(self, catalog: Catalog, tree: FullRecompute, view: int) -> None:
        self._catalog = catalog
        self._rows = compile_plan(catalog, tree.plan)
        self._relations = frozenset(tree.relations)
        self._key = row_keys(tree.plan.fields)
        self._view = view

    def compute_delta(self, step: DeltaStep) -> WeightedRows:
        if not step.relations & self._relations:
            return
        counts: Counter[Row] = Counter()
        known: dict[Row, Row] = {}
        for row in self.compute_all_rows(step.after):
            key = self._key(row)
            counts[key] += 1
            known.setdefault(key, row)
        for row, times in self._read_stored_row_counts(step.before):
            key = self._key(row)
            counts[key] -= times
            known[key] = row
        for key, weight in counts.items():
            if weight:
                yield known[key], weight

    def compute_all_rows(self, reader: Reader) -> Iterator[Row]:
        now = datetime.datetime.now(datetime.UTC)
        environment = Environment(now, now, lambda: now, random.Random())
        return self._rows(make_run_with_reader(reader, environment))

    def build_backfill_parts(self) -> None:
        """None: it is not a sum of parts."""

    def build_key_lookup(self, keys: Expressions) -> KeyLookup:
        return build_full_scan_lookup(self._catalog, self, keys)

    def _read_stored_row_counts(self, reader: Reader) -> Iterator[tuple[Row, int]]:
        stored = compiled_view(self._catalog, self._view)
        decode = stored.payload.decode
        for batch in reader.scan(stored.start, stored.end):
            for _, state in batch:
                payload, amounts = accumulator.decode(state)
                yield decode(payload), amounts[0]
