"""EXPLAIN: the plan tree with estimates, and the chosen tier with its reason; ANALYZE also runs
the statement and measures each node."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belvedere.errors import Unsupported
from belvedere.execution.choose_tier import Tier
from belvedere.execution.python.operators.foreign_scans import describe_foreign_scan
from belvedere.execution.run import Rows, Run
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field
from belvedere.plan.printer import print_plan
from belvedere.plan.transform import walk_plan
from belvedere.session.context.result import Result
from belvedere.session.explain import view
from belvedere.session.materialized import freshness_policy
from belvedere.session.statement.compiled_statement import CompiledStatement
from belvedere.sql import definitions as d
from belvedere.sql import statements as s
from belvedere.types import TEXT, Row
from belvedere.views.rewrite.explain import describe_rewriting

if TYPE_CHECKING:
    from belvedere.session.session import Session

PLAN = (Field("QUERY PLAN", TEXT),)


@dataclass(slots=True)
class _NodeTiming:
    rows: int = 0
    loops: int = 0
    seconds: float = 0.0


def run_explain(session: Session, statement: s.Explain, parameters: Sequence[Any]) -> Result:
    data = statement.statement
    if isinstance(data, d.MaintainView | d.CreateMaterializedView):
        lines = view.describe_view_statement(session, data)
        return Result("EXPLAIN", PLAN, [(line,) for line in lines], len(lines))
    if not isinstance(data, s.DataPlan):
        raise Unsupported(f"EXPLAIN of {type(data).__name__}")
    lines = []
    measures: dict[int, _NodeTiming] = {}
    entry = _compile_with_node_timing(session, data, statement.source, measures)
    reads = freshness_policy.describe_deferred_reads(session, entry)
    if statement.analyze:
        started = time.perf_counter()
        session.run_and_record_statement(entry, parameters)
        lines.append(f"execution time: {(time.perf_counter() - started) * 1000:.3f} ms")
        lines += getattr(reads.runs.rows, "notes", ())
    data, choice = reads.runs.data, reads.runs.choice

    estimate = session.shared.make_row_estimator(session.catalog)

    def format_node_annotation(node: n.Node) -> str:
        text = f"(rows={max(1, round(estimate(node)))})"
        found = measures.get(id(node))
        if found is not None and found.loops:
            spent = found.seconds * 1000
            text += f" (actual rows={found.rows} loops={found.loops} time={spent:.3f} ms)"
        return text

    lines = print_plan(data.plan, note=format_node_annotation).splitlines() + lines
    lines += _describe_foreign_scans(session, data, parameters)
    lines.append(f"tier: {choice.tier} ({choice.reason})")
    if choice.tier is Tier.DUCKDB:
        lines += _describe_duckdb_split(session, data, parameters)
    if entry.rewriting is not None:
        lines += describe_rewriting(entry.rewriting, bypassed=reads.runs is not entry)
    lines += reads.lines
    lines += view.describe_write_effects(session, data.plan)
    return Result("EXPLAIN", PLAN, [(line,) for line in lines], len(lines))


def _describe_foreign_scans(
    session: Session, data: s.DataPlan, parameters: Sequence[Any]
) -> list[str]:
    given = tuple(parameters) or (None,) * len(data.parameters)
    reader = session.shared.get_published_reader()
    run = session.make_run_context(reader, given)
    scans = [node for node in walk_plan(data.plan) if isinstance(node, n.ForeignScan)]
    return [describe_foreign_scan(session.catalog, scan, run) for scan in scans]


def _compile_with_node_timing(
    session: Session, data: s.DataPlan, text: str, measures: dict[int, _NodeTiming]
) -> CompiledStatement:
    def wrap_node_with_timing(node: n.Node, rows: Rows) -> Rows:
        measure = measures.setdefault(id(node), _NodeTiming())
        return lambda run: _yield_timed_rows(rows, run, measure)

    return session.compile_statement(data, text, wrap=wrap_node_with_timing)


def _yield_timed_rows(rows: Rows, run: Run, measure: _NodeTiming) -> Iterator[Row]:
    measure.loops += 1
    clock = time.perf_counter
    started = clock()
    each = rows(run)
    measure.seconds += clock() - started
    while True:
        started = clock()
        row = next(each, None)
        measure.seconds += clock() - started
        if row is None:
            return
        measure.rows += 1
        yield row


def _describe_duckdb_split(
    session: Session, data: s.DataPlan, parameters: Sequence[Any]
) -> list[str]:
    """The SQL text of each part that DuckDB runs, and why the rest stays in Python."""
    from belvedere.execution.split_tiers import HybridReport, lower_hybrid  # heavy

    report = HybridReport()
    transaction = session.transactions.open
    reader = session.shared.get_published_reader() if transaction is None else transaction
    given = tuple(parameters) or (None,) * len(data.parameters)
    context = session.make_run_context(reader, given)
    lower_hybrid(session.catalog, data.plan, session.shared.engine, context, report)
    lines = [f"duckdb: {text}" for text in report.statements]
    lines += [f"reads {name}: {source}" for name, source in report.reads.items()]
    return lines + [f"python: {reason}" for reason in report.reasons]
