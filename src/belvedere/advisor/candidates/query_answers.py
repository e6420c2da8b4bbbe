"""Whole queries as views, for what a join or its groups do not hold: HAVING, EXISTS, outer joins,
windows, set operations, and top-k, the first rows of an order. Such a view answers that very query,
or fewer of its first rows, so the query must not depend on parameters."""

from __future__ import annotations

import hashlib

from belvedere.advisor.candidates.candidate import Candidate, CandidateKind
from belvedere.advisor.candidates.view_shape import NAME_MAX
from belvedere.advisor.workload.bound_workload import WorkloadQuery
from belvedere.catalog.catalog import Catalog
from belvedere.plan import nodes as n
from belvedere.plan import transform

_JOINED = (n.Scan, n.Filter, n.Project, n.Sort)


def list_query_answers(catalog: Catalog, query: WorkloadQuery) -> list[Candidate]:
    """The query as a view; none where it is a join, which has candidates of its own."""
    nodes = transform.walk_plan(query.data.plan)
    if query.data.parameters or all(map(_is_joined, nodes)):
        return []
    definition = query.statement.text.strip().rstrip(";").rstrip()
    tables = "_".join(catalog.table(one).name for one in dict.fromkeys(query.data.relations))
    digest = hashlib.sha256(definition.encode()).hexdigest()[:4]
    is_top = any(isinstance(one, n.Limit) for one in nodes)
    return [
        Candidate(
            f"{tables[: NAME_MAX - 8]}_{'top' if is_top else 'answer'}_{digest}",
            CandidateKind.TOP if is_top else CandidateKind.WHOLE,
            frozenset(query.data.relations),
            definition,
            queries=frozenset((query.name,)),
        )
    ]


def _is_joined(node: n.Node) -> bool:
    if any(map(transform.has_subplan, transform.own_expressions(node))):
        return False
    if isinstance(node, n.Join):
        return node.kind is n.JoinKind.INNER and not node.lateral
    return isinstance(node, _JOINED)
