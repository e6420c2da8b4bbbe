"""Bugs of materialized views."""

from __future__ import annotations

from belvedere.codec import accumulator
from belvedere.pipeline.changed import ChangedSums
from belvedere.session.reading import ready_to_read
from belvedere.txn.border import Reader
from belvedere.views import group, single
from belvedere.views.apply import ApplySource
from belvedere.views.backfill import backfill
from belvedere.views.flip import Flip
from belvedere.views.maintain import Maintainer
from belvedere.views.operators import CoreSource
from belvedere.views.partition import RecomputeSource
from belvedere.views.summing import Sums
from tests.mutations.patch import Mutation, before, mutation, patch

_WRITE = "        self.write_sums(sums, writer)\n"
_ADD = '        f"rows[key] = {add}(state, {payload}, {amounts})",\n    ]'
_LEFT_OUT = """\
        from tests.mutations.views import leave_out_emptied
        self.write_sums(leave_out_emptied(self, sums, reader), writer)
"""

MUTATIONS: dict[str, Mutation] = {
    "view_batch_twice": mutation(
        "a maintenance batch is applied again after a restart",
        patch(group._still_holds, before("    unit = batch.unit\n", "return True")),
    ),
    "view_delta_twice": mutation(
        "a view adds each delta twice",
        patch(Maintainer.writes, (_WRITE, 2 * _WRITE)),
        patch(Maintainer.writes_beside, (_WRITE, 2 * _WRITE)),
        patch(single._add, (_ADD, f"{_ADD} * 2")),
        patch(
            single._both,
            ('f"{d} = {b} - {a}" for d', 'f"{d} = 2 * ({b} - {a})" for d'),
        ),
        patch(
            ChangedSums.__call__,
            before(
                "            yield from encoded(recorder.sums)\n",
                "yield from encoded(recorder.sums)",
            ),
        ),
    ),
    "view_join_after": mutation(
        "the delta of a join reads the state after the changes on both sides",
        patch(CoreSource.delta, ("given, step.before)", "given, step.after)")),
    ),
    "view_padding_kept": mutation(
        "a row padded with NULLs stays when its first match comes",
        patch(ApplySource._of_join, ("if kind is not n.JoinKind.INNER:", "if False:")),
    ),
    "view_deletes_ignored": mutation(
        "a group whose rows only went is not done again: its minimum stays",
        patch(
            RecomputeSource._touched,
            (
                "for row, _ in source.delta(step)]",
                "for row, weight in source.delta(step) if weight > 0]",
            ),
        ),
    ),
    "view_null_group_dropped": mutation(
        "rows of the NULL group are left out",
        patch(
            Maintainer.write_sums, ("if any(amounts)]", "if any(amounts) and None not in group]")
        ),
        patch(
            single.single_function,
            before(
                "    lines += _replaced(",
                'drop = "if {0} is not None and None in {0}: {0} = None"',
                'lines += [drop.format(side) for side in ("ag", "bg")]',
            ),
        ),
    ),
    "view_flip_without_log": mutation(
        "a view becomes immediate without what the log still has for it",
        patch(Flip._apply_log, before("        before = state_before(", "missed = []")),
    ),
    "view_snapshot_early": mutation(
        "a backfill claims a later position than it read at",
        patch(backfill, ("position = reader.position", "position = commits.newest.position")),
    ),
    "view_build_keeps_deleted": mutation(
        "rows deleted while a view is filled stay in it",
        patch(
            group._Work.of_view,
            before(
                "        if not changes:\n",
                "if view.state is State.BUILDING:",
                "    changes = [change for change in changes if change.new is not None]",
            ),
        ),
    ),
    "view_group_stays_gone": mutation(
        "a group that was emptied does not come back",
        patch(Maintainer.writes, (_WRITE, _LEFT_OUT)),
        patch(Maintainer.writes_beside, (_WRITE, _LEFT_OUT)),
        # Single rows go the way that has the bug.
        patch(Maintainer.alone, ("return self._alone[prefix]", "return None")),
    ),
    "view_read_behind_token": mutation(
        "a deferred view is read though it has not reached the token",
        patch(
            ready_to_read,
            ("    session.host.views.deferred.sample()\n", "    return entry, transaction\n"),
        ),
    ),
}


def leave_out_emptied(maintainer: Maintainer, sums: Sums, reader: Reader) -> Sums:
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
