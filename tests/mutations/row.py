"""Bugs that earlier drafts of the row-atomic commit had."""

from __future__ import annotations

from belvedere.txn.row_atomic import commit
from belvedere.txn.row_atomic.bulk_commit import hold_and_verify
from belvedere.txn.row_atomic.catalog_barrier import wait_for_older_locks
from belvedere.txn.row_atomic.commit import verify_rows
from belvedere.txn.row_atomic.housekeeping.vacuum import _trim_positions
from belvedere.txn.row_atomic.load_holds import _end_silent_hold
from belvedere.txn.row_atomic.locks import take_locks
from belvedere.txn.row_atomic.log.log_rows import resolve_doubt
from tests.mutations.patch import Mutation, before, mutation, patch

_STAMP_AND_WRITE = """\
        yield from locks.stamp_primary(node, held, position)
        committed = yield from log_rows.write_record(node, position, record, value)
"""
_WRITE_AND_STAMP = """\
        committed = yield from log_rows.write_record(node, position, record, value)
        if not committed:
            yield from locks.stamp_primary(node, held, position)
"""
_TAKE_AND_CHECK = """\
        position = yield from take_position(node)
        if held.newest[0] >= position:
"""
_TAKEN_AHEAD = """\
        position, checks = ahead or (yield from take_position(node)), not ahead
        ahead = 0
        if checks and held.newest[0] >= position:
"""
_ASK_MARKER = """\
            marker = (Put(layout.OWNER, layout.ONLY, ABORT),)
            if (yield CheckAndMutate(row, layout.OWNER, None, marker)):
                return False
"""

MUTATIONS: dict[str, Mutation] = {
    "position_before_stamp": mutation(
        "the log row is written before the primary lock carries its position",
        patch(commit._append_to_log, (_STAMP_AND_WRITE, _WRITE_AND_STAMP)),
    ),
    "position_fetched_ahead": mutation(
        "a position is fetched before the locks are held",
        patch(
            commit.commit_transaction,
            before(
                "        record = yield from prepare_commit(node, held, work)\n",
                "ahead = yield from take_position(node)",
            ),
            ("complete_commit(node, held, record)", "complete_commit(node, held, record, ahead)"),
        ),
        patch(
            commit.complete_commit,
            ("record: Record) ->", "record: Record, *ahead) ->"),
            ("append_record(node, held, record)", "append_record(node, held, record, *ahead)"),
        ),
        patch(
            commit.append_record,
            ("record: Record) ->", "record: Record, *ahead) ->"),
            (
                "_append_to_log(node, held, record, value)",
                "_append_to_log(node, held, record, value, *ahead)",
            ),
        ),
        patch(
            commit._append_to_log,
            (
                "value: bytes) -> Step[int]:\n",
                "value: bytes, *given) -> Step[int]:\n    ahead = sum(given)\n",
            ),
            (_TAKE_AND_CHECK, _TAKEN_AHEAD),
        ),
    ),
    "abort_marker_trimmed": mutation(
        "trimming removes abort markers as well",
        patch(_trim_positions, ("if owner is None or owner == ABORT:", "if owner is None:")),
    ),
    "record_under_old_catalog": mutation(
        "DDL takes its snapshot without waiting for older locks",
        patch(wait_for_older_locks, ("in (yield from _older_locks(version)):", "in ():")),
    ),
    "lost_reply_after_trim": mutation(
        "a lost reply below the trim floor is answered from the log row",
        patch(resolve_doubt, ("            yield from _write_abort_marker(row)\n", _ASK_MARKER)),
    ),
    "primary_not_first": mutation(
        "secondary locks are taken before the primary",
        patch(take_locks, before("    started = yield Now()\n", "rows.reverse()")),
    ),
    "load_without_waiting": mutation(
        "a bulk load does not wait for who has locks",
        patch(hold_and_verify, ("yield from catalog_barrier.wait_for_writers(node)", "pass")),
    ),
    "hold_not_looked_at": mutation(
        "a commit does not look for holds of its tables",
        patch(verify_rows, ("    load_holds.require_not_held(found[0], rows, held.attempt)\n", "")),
    ),
    "hold_of_live_load_removed": mutation(
        "a hold is removed before its attempt is ended",
        patch(_end_silent_hold, ("if holder is not None:", "if False:")),
    ),
}
