"""A workload bound to a catalog: queries with their join blocks, writes with what they change, and
the statements that are neither, each with the reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from belvedere.advisor.workload.join_block import JoinBlock, collect_join_blocks
from belvedere.advisor.workload.statements import WorkloadStatement
from belvedere.catalog.catalog import Catalog
from belvedere.errors import Error, InvalidInput, Unsupported
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS, bind_statement
from belvedere.sql.parse.script import parse_script
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.prune_columns import prune_columns
from belvedere.sql.rules.push_predicates import push_predicates
from belvedere.sql.rules.simplify_projects import simplify_projects
from belvedere.sql.rules.subqueries.decorrelate import decorrelate
from belvedere.sql.statements import DataPlan


@dataclass(frozen=True, slots=True)
class WorkloadQuery:
    statement: WorkloadStatement
    data: DataPlan
    blocks: tuple[JoinBlock, ...]

    @property
    def name(self) -> str:
        return self.statement.name


@dataclass(frozen=True, slots=True)
class WorkloadWrite:
    """A statement that changes rows of one table. `slots` are the columns it sets; None: all."""

    statement: WorkloadStatement
    relation: int
    verb: str
    slots: frozenset[int] | None

    @property
    def name(self) -> str:
        return self.statement.name


@dataclass(frozen=True, slots=True)
class RejectedStatement:
    statement: WorkloadStatement
    reason: str


@dataclass(frozen=True, slots=True)
class BoundWorkload:
    queries: tuple[WorkloadQuery, ...]
    writes: tuple[WorkloadWrite, ...]
    rejected: tuple[RejectedStatement, ...]


def bind_workload(catalog: Catalog, statements: Sequence[WorkloadStatement]) -> BoundWorkload:
    queries, writes, rejected = [], [], []
    for statement in statements:
        try:
            bound = _bind_statement(catalog, statement)
        except Error as error:
            rejected.append(RejectedStatement(statement, _describe_error(error)))
            continue
        if isinstance(bound, WorkloadQuery):
            queries.append(bound)
        else:
            writes.append(bound)
    return BoundWorkload(tuple(queries), tuple(writes), tuple(rejected))


def _describe_error(error: Error) -> str:
    facts = [str(error.facts[key]) for key in ("name", "column", "function") if key in error.facts]
    return f"{error.message}{': ' + ', '.join(facts) if facts else ''} ({error.sqlstate})"


def _bind_statement(
    catalog: Catalog, statement: WorkloadStatement
) -> WorkloadQuery | WorkloadWrite:
    found = parse_script(statement.text)
    if len(found) != 1:
        raise InvalidInput("not one statement", sqlstate="42601")
    bound = bind_statement(found[0].tree, catalog)
    if not isinstance(bound, DataPlan):
        raise Unsupported("neither a query nor a change of rows", sqlstate="0A000")
    if any(
        isinstance(node, n.VirtualScan | n.ForeignScan) for node in transform.walk_plan(bound.plan)
    ):
        raise Unsupported("a query of system tables")
    if bound.changes:
        return _make_write(statement, bound)
    if not bound.relations:
        raise Unsupported("a query of no table")
    return WorkloadQuery(statement, bound, tuple(_find_blocks(catalog, bound.plan)))


def _find_blocks(catalog: Catalog, plan: n.Node) -> list[JoinBlock]:
    context = OptimizerContext(catalog, STORED_EXPRESSIONS)
    for rule in (decorrelate, push_predicates, simplify_projects, prune_columns):
        plan = rule(plan, context)
    return collect_join_blocks(plan)


def _make_write(statement: WorkloadStatement, bound: DataPlan) -> WorkloadWrite:
    for node in transform.walk_plan(bound.plan):
        match node:
            case n.Insert():
                return WorkloadWrite(statement, node.relation, "insert", None)
            case n.Update():
                slots = frozenset(one.ordinal for one in node.assignments)
                return WorkloadWrite(statement, node.relation, "update", slots)
            case n.Delete():
                return WorkloadWrite(statement, node.relation, "delete", None)
    raise Unsupported("a change of rows inside a query")
