"""Synergy's mechanism on TPC-W with the paper's roots: candidate views, chosen views, indexes."""

from __future__ import annotations

from pathlib import Path

from belvedere.advisor.report.stages_text import describe_stages
from belvedere.advisor.synergy.mechanism import run_mechanism
from belvedere.advisor.workload.bound_workload import bind_workload
from belvedere.advisor.workload.statements import read_workload_text
from belvedere.benchmarks.tpcw.mixes import write_workload
from belvedere.benchmarks.tpcw.schema import ROOTS, list_index_statements, list_table_statements
from belvedere.catalog.catalog import Catalog
from belvedere.database import open_sql_database
from belvedere.session.session import Session

GOLDEN = Path(__file__).parent / "golden"


def _make_catalog() -> Catalog:
    database, shared = open_sql_database(":memory:")
    with database:
        for statement in (*list_table_statements(), *list_index_statements()):
            Session(shared).execute(statement)
        return database.catalog


def test_candidates_and_chosen_views_of_tpcw(update_golden: bool) -> None:
    catalog = _make_catalog()
    workload = bind_workload(catalog, read_workload_text(write_workload("shopping")))
    assert not workload.rejected
    text = "\n".join(describe_stages(run_mechanism(catalog, workload, ROOTS))) + "\n"
    path = GOLDEN / "tpcw.txt"
    if update_golden:
        path.write_text(text)
    assert text == path.read_text()


def test_roots_chosen_for_tpcw_cover_as_many_joins_as_those_of_the_paper() -> None:
    catalog = _make_catalog()
    workload = bind_workload(catalog, read_workload_text(write_workload("shopping")))
    given, chosen = (run_mechanism(catalog, workload, roots) for roots in (ROOTS, ()))

    def weigh(stages: object) -> float:
        assert isinstance(stages, type(given))
        return sum(stages.weight(edge) for tree in stages.trees for edge in tree.edges)

    assert weigh(chosen) >= weigh(given)
