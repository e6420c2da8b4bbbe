"""Bugs of materialized views."""

from __future__ import annotations

from belvedere.codec import accumulator
from belvedere.pipeline.aggregate.linear_views import LinearDeltaTask
from belvedere.session.materialized.freshness_policy import choose_statement_and_reader
from belvedere.txn.contracts import Reader
from belvedere.views.backfill.backfill_views import backfill_views
from belvedere.views.codegen import single_row
from belvedere.views.codegen.group_sums import GroupSums
from belvedere.views.deferred import batch
from belvedere.views.maintain.maintainer import ViewMaintainer
from belvedere.views.operators.apply import ApplyOperator
from belvedere.views.operators.linear import LinearCoreOperator
from belvedere.views.operators.recompute import RecomputeOperator
from belvedere.views.registry.transitions import ViewTransitionParticipant
from tests.mutations.patch import Mutation, before, mutation, patch

_WRITE = "        self.write_sums_as_additions(sums, writer)\n"
_ADD = '        f"rows[key] = {add}(state, {payload}, {amounts})",\n    ]'
_LEFT_OUT = """\
        from tests.mutations.views import leave_out_emptied
        self.write_sums_as_additions(leave_out_emptied(self, sums, reader), writer)
"""

MUTATIONS: dict[str, Mutation] = {
    "view_batch_twice": mutation(
        "a maintenance batch is applied again after a restart",
        patch(batch._is_batch_still_valid, before("    unit = batch.unit\n", "return True")),
    ),
    "view_delta_twice": mutation(
        "a view adds each delta twice",
        patch(ViewMaintainer.writes, (_WRITE, 2 * _WRITE)),
        patch(ViewMaintainer.write_additions_from_cache, (_WRITE, 2 * _WRITE)),
        patch(single_row._generate_addition_lines, (_ADD, f"{_ADD} * 2")),
        patch(
            single_row._generate_difference_lines,
            ('f"{d} = {b} - {a}" for d', 'f"{d} = 2 * ({b} - {a})" for d'),
        ),
        patch(
            LinearDeltaTask.__call__,
            before(
                "            yield from encode_nonzero_sums(recorder.sums)\n",
                "yield from encode_nonzero_sums(recorder.sums)",
            ),
        ),
    ),
    "view_join_after": mutation(
        "the delta of a join reads the state after the changes on both sides",
        patch(LinearCoreOperator.compute_delta, ("given, step.before)", "given, step.after)")),
    ),
    "view_padding_kept": mutation(
        "a row padded with NULLs stays when its first match comes",
        patch(
            ApplyOperator._compute_right_join_delta,
            ("if kind is not n.JoinKind.INNER:", "if False:"),
        ),
    ),
    "view_deletes_ignored": mutation(
        "a group whose rows only went is not done again: its minimum stays",
        patch(
            RecomputeOperator.compute_delta,
            (
                "for row, _ in source.compute_delta(step)]",
                "for row, weight in source.compute_delta(step) if weight > 0]",
            ),
        ),
    ),
    "view_null_group_dropped": mutation(
        "rows of the NULL group are left out",
        patch(
            ViewMaintainer.write_sums_as_additions,
            ("if any(amounts)]", "if any(amounts) and None not in group]"),
        ),
        patch(
            single_row.compile_single_row_function,
            before(
                "    lines += (\n",
                'drop = "if {0} is not None and None in {0}: {0} = None"',
                'lines += [drop.format(side) for side in ("ag", "bg")]',
            ),
        ),
    ),
    "view_flip_without_log": mutation(
        "a view becomes immediate without what the log still has for it",
        patch(
            ViewTransitionParticipant._apply_pending_log,
            before("        before = build_reader_before_changes(", "missed = []"),
        ),
    ),
    "view_snapshot_early": mutation(
        "a backfill claims a later position than it read at",
        patch(
            backfill_views,
            ("position = reader.position", "position = commits.newest_snapshot.position"),
        ),
    ),
    "view_build_keeps_deleted": mutation(
        "rows deleted while a view is filled stay in it",
        patch(
            batch._BatchComputation.compute_view_additions,
            before(
                "        if not changes:\n",
                "if view.state is ObjectState.BUILDING:",
                "    changes = [change for change in changes if change.new is not None]",
            ),
        ),
    ),
    "view_group_stays_gone": mutation(
        "a group that was emptied does not come back",
        patch(ViewMaintainer.writes, (_WRITE, _LEFT_OUT)),
        patch(ViewMaintainer.write_additions_from_cache, (_WRITE, _LEFT_OUT)),
        # Single rows go the way that has the bug.
        patch(
            ViewMaintainer.single_row_writes,
            ("return self._single_row_functions[prefix]", "return None"),
        ),
    ),
    "view_read_behind_token": mutation(
        "a deferred view is read though it has not reached the token",
        patch(
            choose_statement_and_reader,
            (
                "    session.host.views.deferred.sample_published_position()\n",
                "    return entry, transaction\n",
            ),
        ),
    ),
}


def leave_out_emptied(maintainer: ViewMaintainer, sums: GroupSums, reader: Reader) -> GroupSums:
    """The sums without those of groups that this maintainer has seen lose their last row."""
    emptied, kept = vars(maintainer).setdefault("emptied", set()), {}
    for group_, amounts in sums.items():
        key = maintainer._stored.key.encode(group_)
        if key not in emptied:
            kept[group_] = amounts
            state = reader.get(key)
            before = 0 if state is None else accumulator.decode(state)[1][0]
            if state is not None and before + amounts[0] == 0:
                emptied.add(key)
    return kept
