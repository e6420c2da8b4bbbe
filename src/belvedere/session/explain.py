"""EXPLAIN: the plan as a tree, with estimates, the chosen tier and why; ANALYZE runs it too."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.graph import root_table
from belvedere.catalog.model import Maintenance, View
from belvedere.errors import Unsupported
from belvedere.execution.choose import Tier
from belvedere.execution.run import Rows, Run
from belvedere.plan import nodes as n
from belvedere.plan.fields import Field
from belvedere.plan.printer import print_plan
from belvedere.session import reading, views
from belvedere.session.prepared import Prepared
from belvedere.session.result import Result
from belvedere.sql import definitions as d
from belvedere.sql import statements as s
from belvedere.types import TEXT, Row
from belvedere.views.compile import compile_view
from belvedere.views.explain import explained

if TYPE_CHECKING:
    from belvedere.session.session import Session

PLAN = (Field("QUERY PLAN", TEXT),)


@dataclass(slots=True)
class _Measure:
    rows: int = 0
    loops: int = 0
    seconds: float = 0.0


def run(session: Session, statement: s.Explain, parameters: Sequence[Any]) -> Result:
    data = statement.statement
    if isinstance(data, d.MaintainView | d.CreateMaterializedView):
        lines = view_lines(session, data)
        return Result("EXPLAIN", PLAN, [(line,) for line in lines], len(lines))
    if not isinstance(data, s.DataPlan):
        raise Unsupported(f"EXPLAIN of {type(data).__name__}")
    lines = []
    measures: dict[int, _Measure] = {}
    entry = _prepared(session, data, statement.source, measures)
    data, choice = entry.data, entry.choice
    if statement.analyze:
        started = time.perf_counter()
        session.run_data(entry, parameters)
        lines.append(f"execution time: {(time.perf_counter() - started) * 1000:.3f} ms")

    estimate = session.shared.estimator(session.catalog)

    def note(node: n.Node) -> str:
        text = f"(rows={max(1, round(estimate(node)))})"
        found = measures.get(id(node))
        if found is not None and found.loops:
            spent = found.seconds * 1000
            text += f" (actual rows={found.rows} loops={found.loops} time={spent:.3f} ms)"
        return text

    lines = print_plan(data.plan, note=note).splitlines() + lines
    lines.append(f"tier: {choice.tier} ({choice.reason})")
    if choice.tier is Tier.DUCKDB:
        lines += _parts(session, data, parameters)
    lines += reading.explained(session, entry)
    lines += _writes(session.catalog, data.plan)
    return Result("EXPLAIN", PLAN, [(line,) for line in lines], len(lines))


def view_lines(session: Session, statement: d.MaintainView | d.CreateMaterializedView) -> list[str]:
    """How a view is kept, or would be, and what it makes each write do."""
    catalog, keeper, name = session.catalog, session.host.keeper, statement.name
    if isinstance(statement, d.CreateMaterializedView):
        compiled = compile_view(views.bind_definition(catalog, statement.query))
        given = dict(statement.options).get("maintenance", Maintenance.IMMEDIATE.value)
        head = f"view {name.name} would be {given}"
    else:
        view = catalog.expect(View, name.name, name.schema or "public")
        compiled = keeper.compiled(catalog, view)
        head = f"view {name.name} is {view.maintenance.value}"
    wishes = [
        f"index to be made on {table.name} "
        f"({', '.join(table.columns[slot].name for slot in wish.slots)})"
        for wish in keeper.wishes_of(catalog, compiled)
        for table in (catalog.table(wish.relation),)
    ]
    return [head, *explained(catalog, compiled), *wishes]


def _prepared(
    session: Session, data: s.DataPlan, text: str, measures: dict[int, _Measure]
) -> Prepared:
    def wrap(node: n.Node, rows: Rows) -> Rows:
        measure = measures.setdefault(id(node), _Measure())
        return lambda run: _measured(rows, run, measure)

    return session.prepare(data, text, wrap=wrap)


def _measured(rows: Rows, run: Run, measure: _Measure) -> Iterator[Row]:
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


def _parts(session: Session, data: s.DataPlan, parameters: Sequence[Any]) -> list[str]:
    """The SQL text of each part that DuckDB answers, and why the rest stays in Python."""
    from belvedere.execution.hybrid import Report, lower_hybrid  # heavy

    report = Report()
    transaction = session.transactions.open
    reader = session.shared.newest_reader() if transaction is None else transaction
    given = tuple(parameters) or (None,) * len(data.parameters)
    context = session.new_run(reader, given)
    lower_hybrid(session.catalog, data.plan, session.shared.engine, context, report)
    lines = [f"duckdb: {text}" for text in report.statements]
    lines += [f"reads {name}: {source}" for name, source in report.reads.items()]
    return lines + [f"python: {reason}" for reason in report.reasons]


def _writes(catalog: Catalog, node: n.Node) -> list[str]:
    """What a write locks and touches."""
    while isinstance(node, n.With):
        node = node.body
    if not isinstance(node, n.Insert | n.Update | n.Delete):
        return []
    table = catalog.table(node.relation)
    root = root_table(catalog, table)
    lines = [f"locks: root key of {root.name}, one per row"]
    lines.append("key reads: the primary key of each row")
    for index in catalog.indexes_of(table.id):
        lines.append(f"index: {index.name}{' unique' if index.unique else ''}")
    for view in catalog.views_over(table.id):
        if view.maintenance is Maintenance.IMMEDIATE:
            lines.append(f"view: {view.name}")
    for key in table.foreign_keys:
        if key.enforced:
            lines.append(f"check at commit: foreign key {key.name}")
    return lines
