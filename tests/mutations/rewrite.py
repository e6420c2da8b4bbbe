"""Bugs of query rewriting."""

from __future__ import annotations

from belvedere.views.rewrite import lossless_joins, match, roll_up, signature
from belvedere.views.rewrite.compensate import _CompensationBuilder
from belvedere.views.rewrite.derive_columns import RowDerivation
from tests.mutations.patch import Mutation, before, mutation, patch

MUTATIONS: dict[str, Mutation] = {
    "rewrite_lossy_join": mutation(
        "a join along a foreign key that may be NULL counts as lossless",
        patch(
            lossless_joins._find_foreign_key_equalities,
            ("not is_declared_not_null(table, mine) or ", ""),
        ),
    ),
    "rewrite_any_join": mutation(
        "every extra join of a view counts as lossless",
        patch(
            lossless_joins.find_lossless_equalities,
            (
                "            return None\n",
                "            equalities = [x for x in view.conditions if _reads_leaf(x, leaf)]\n",
            ),
        ),
        patch(
            lossless_joins.list_required_tables,
            before("    while len(left) > 1:\n", "left = left[:1]"),
        ),
    ),
    "rewrite_view_condition": mutation(
        "a view that keeps only some rows answers queries for all",
        patch(
            match._find_condition_refusal,
            before("    for condition in kept.others:\n", "return None"),
        ),
        patch(
            signature.find_signature_conflict,
            ("    for wanted in view.kept:\n", "    for wanted in ():\n"),
        ),
    ),
    "rewrite_view_equality": mutation(
        "a view that joins rows answers queries that join them otherwise",
        patch(
            match._find_condition_refusal,
            ("if given.find_representative(other) != first:", "if False:"),
        ),
    ),
    "rewrite_residual": mutation(
        "conditions that a view does not guarantee are left out",
        patch(
            match.align_view,
            before("    covered = {", "residual = residual[1:]"),
        ),
    ),
    "rewrite_equality": mutation(
        "equalities that a view does not guarantee are left out",
        patch(
            RowDerivation.derive_missing_equalities,
            ("            if len(groups) > 1:", "            if len(groups) > 99:"),
        ),
    ),
    "rewrite_outer_join": mutation(
        "a view of an inner join answers a left join",
        patch(match._find_outer_join_refusal, before("    plain = ", "return None")),
    ),
    "rewrite_same_groups": mutation(
        "finer groups are shown as they are",
        patch(_CompensationBuilder._has_same_groups, ("theirs <= mine", "mine <= theirs")),
    ),
    "rewrite_count_of_nothing": mutation(
        "the count of no groups is NULL",
        patch(
            roll_up._null_count_to_zero,
            (
                "e.Coalesce((_cast_to(values[0], BIGINT), e.Literal(0, BIGINT)), BIGINT)",
                "_cast_to(values[0], BIGINT)",
            ),
        ),
    ),
    "rewrite_count_of_nulls": mutation(
        "count(x) is taken for count(*)",
        patch(
            roll_up.AggregateColumns._normalize_call,
            ("if self._never_null(call.arguments[0]):", "if True:"),
        ),
    ),
}
