"""Synergy's mechanism on the paper's Company example, stage by stage."""

from __future__ import annotations

from pathlib import Path

from belvedere.advisor.report.stages_text import describe_stages
from belvedere.advisor.synergy.mechanism import SynergyStages, run_mechanism
from belvedere.advisor.workload.bound_workload import bind_workload
from belvedere.advisor.workload.statements import read_workload_text
from belvedere.database import open_sql_database
from belvedere.session.session import Session
from tests.advisor.company import ROOTS, SCHEMA, WORKLOAD

GOLDEN = Path(__file__).parent / "golden" / "company.txt"


def _run(roots: tuple[str, ...] = ROOTS) -> SynergyStages:
    database, shared = open_sql_database(":memory:")
    with database:
        Session(shared).execute(SCHEMA)
        catalog = database.catalog
    return run_mechanism(catalog, bind_workload(catalog, read_workload_text(WORKLOAD)), roots)


def test_every_stage_of_the_company_example(update_golden: bool) -> None:
    text = "\n".join(describe_stages(_run())) + "\n"
    if update_golden:
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_the_office_edge_is_removed_because_no_query_joins_along_it() -> None:
    stages = _run()
    removed = [edge for edge in stages.graph.edges if edge not in stages.dag.edges]
    assert [stages.graph.describe_edge(edge) for edge in removed] == ["(aid, eoffice_aid)"]


def test_each_relation_belongs_to_one_root_at_most() -> None:
    owned = [relation for tree in _run().trees for relation in tree.relations]
    assert len(owned) == len(set(owned))
