"""Statements answered from materialized views that they do not name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.session.materialized.create import list_views_of_transaction
from belvedere.sql.statements import DataPlan
from belvedere.views.rewrite.planner import RewriteChoice

if TYPE_CHECKING:
    from belvedere.session.session import Session


def find_rewriting(session: Session, data: DataPlan) -> RewriteChoice | None:
    """What views do for a statement; None: none of them has to do with it, or rewriting is off.
    Statements that write find their rows in the tables themselves."""
    if data.changes or not session.settings.rewrite or list_views_of_transaction(session):
        return None
    return session.shared.rewrites.rewrite_plan(data.plan, session.catalog)


def make_rewritten_statement(data: DataPlan, rewriting: RewriteChoice) -> tuple[DataPlan, DataPlan]:
    """The statement as it was written, and as it is to run: with the relations that it reads."""
    made = replace(data, plan=rewriting.plan)
    if not rewriting.answers:
        return made, made
    nodes = transform.walk_plan(rewriting.plan)
    scans = [node.relation for node in nodes if isinstance(node, n.Scan)]
    return data, replace(made, relations=tuple(dict.fromkeys(scans)))
