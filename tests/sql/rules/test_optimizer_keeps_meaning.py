"""The law of the optimizer: an optimized plan gives the rows of the bound plan, whatever the
statistics say. Random queries over tables full of NULLs, run by the direct executor."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

import belvedere
from belvedere.database import Database
from belvedere.errors import Error
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.run import Interrupt, Run
from belvedere.plan import nodes as n
from belvedere.plan.functions import Environment
from belvedere.plan.printer import print_plan
from belvedere.plan.transform import walk_plan
from belvedere.session.statement.bind import parse_statements
from belvedere.sql.bind.statements.statement import STORED_EXPRESSIONS, bind_statement
from belvedere.sql.rules.context import OptimizerContext
from belvedere.sql.rules.optimize import RULES, optimize
from belvedere.sql.statements import DataPlan
from tests.sql.random_queries import CHOSEN, SETUP, Generator, rows
from tests.sql.shop import Sized

NOW = datetime.datetime(2024, 5, 6, tzinfo=datetime.UTC)
QUERIES = 250
PROFILES = {"tiny": 3.0, "medium": 2_000.0, "huge": 5_000_000.0}


class Tables:
    def __init__(self, seed: int) -> None:
        self.connection = belvedere.connect(":memory:")
        self.connection.autocommit = True
        rng = random.Random(seed)
        for statement in [*SETUP.split(";"), *rows(rng)]:
            self.connection.execute(statement)
        self.database: Database = self.connection._session.host

    def context(self, size: float) -> OptimizerContext:
        relations = [table.id for table in self.database.catalog.tables]
        return OptimizerContext(
            self.database.catalog, STORED_EXPRESSIONS, Sized(dict.fromkeys(relations, size), {})
        )

    def run(self, plan: n.Node) -> Counter[Any] | str:
        with self.database.begin() as txn:
            environment = Environment(NOW, NOW, lambda: NOW, random.Random(1))
            run = Run(txn, (), environment, None, Interrupt())  # type: ignore[arg-type]
            try:
                return Counter(compile_plan(txn.catalog, plan)(run))
            except Error as error:
                return error.sqlstate


@pytest.fixture(scope="module")
def tables(request: pytest.FixtureRequest) -> Iterator[Tables]:
    opened = Tables(request.config.getoption("--seed") or 1)
    yield opened
    opened.connection.close()


def bound(tables: Tables, text: str) -> n.Node:
    statement = bind_statement(parse_statements(text)[0].tree, tables.database.catalog)
    assert isinstance(statement, DataPlan)
    return statement.plan


# Constants that are not folded yet make compiled functions compare literals.
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_optimized_plans_give_the_rows_of_bound_plans(tables: Tables, seed: int) -> None:
    generator = Generator(random.Random(seed))
    texts = [*CHOSEN, *(generator.query() for _ in range(QUERIES))]
    for number, text in enumerate(texts):
        plan = bound(tables, text)
        wanted = tables.run(plan)
        for profile, size in PROFILES.items():
            better = optimize(plan, tables.context(size))
            got = tables.run(better)
            if isinstance(wanted, str) and isinstance(got, str):
                continue  # which of several errors shows may differ
            assert got == wanted, (
                f"query {number} of seed {seed}, statistics {profile}\n{text}\n"
                f"{print_plan(plan, exact=True)}\n=>\n{print_plan(better, exact=True)}"
            )


def test_random_queries_reach_every_join_method_and_access(tables: Tables, seed: int) -> None:
    generator = Generator(random.Random(seed))
    seen: set[str] = set()
    for text in [*CHOSEN, *(generator.query() for _ in range(QUERIES // 2))]:
        plan = bound(tables, text)
        for size in PROFILES.values():
            for node in walk_plan(optimize(plan, tables.context(size))):
                if isinstance(node, n.Join):
                    seen |= {node.kind.value, node.method.value}
                elif isinstance(node, n.Scan):
                    seen.add(node.access.kind.value)
    wanted = {"inner", "left", "right", "full", "semi", "anti", "hash", "lookup", "loop"}
    wanted |= {"key", "keys", "prefix", "range"}
    assert wanted <= seen | {"full"}, wanted - seen


def test_rules_stand_in_one_ordered_tuple() -> None:
    names = [rule.__name__ for rule in RULES]
    assert names.index("fold_constants") < names.index("push_predicates")
    assert names.index("push_predicates") < names.index("order_joins") < names.index("choose_joins")
    assert names.index("prune_columns") < names.index("choose_access")
