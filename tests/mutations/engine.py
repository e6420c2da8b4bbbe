"""Bugs of durability, recovery, the log, the catalog and the codecs."""

from __future__ import annotations

from belvedere.codec import key_parts
from belvedere.codec.record import decode_record
from belvedere.database import Database
from belvedere.txn.batch_atomic import recovery
from belvedere.txn.batch_atomic.anchor import Anchor
from belvedere.txn.batch_atomic.change_log import BatchChangeLog
from belvedere.txn.batch_atomic.commit import BatchCommit
from belvedere.txn.batch_atomic.group_sync import GroupSync
from belvedere.txn.batch_atomic.visibility import Visibility
from tests.mutations.patch import Mutation, before, mutation, patch

_SYNC = """\
        if failpoints.armed:
            failpoints.hit("sync.before")
        self._sync()
"""
_SYNC_SWALLOWING = """\
        try:
            if failpoints.armed:
                failpoints.hit("sync.before")
            self._sync()
        except (Error, OSError):
            pass
"""
_WRITE = "                self.store.write(batch, cleared=cleared)\n"
_TWO_WRITES = """\
                self.store.write(batch[:2], sync=True)
                if failpoints.armed:
                    failpoints.hit("commit.after_write")
                self.store.write(batch[2:])
"""

MUTATIONS: dict[str, Mutation] = {
    "ack_before_sync": mutation(
        "a commit is acknowledged before the sync that covers it",
        patch(
            GroupSync.wait_durable,
            before(
                "        me = threading.Lock()\n",
                "self._visibility.publish_through(self._visibility.written)",
                "return",
            ),
        ),
    ),
    "sync_skipped": mutation(
        "the sync is not done at all",
        patch(GroupSync._sync_once, ("self._sync()", "pass")),
    ),
    "sync_error_swallowed": mutation(
        "a failed sync is taken for a success",
        patch(GroupSync._sync_once, (_SYNC, _SYNC_SWALLOWING)),
    ),
    "anchor_skipped": mutation(
        "the anchor is not written, so a lost log goes unnoticed",
        patch(
            Anchor._write_slot,
            before(
                "        mark = AnchorMark(",
                "if state is self.mark.state is AnchorState.OPEN:",
                "    return",
            ),
        ),
    ),
    "chain_unchecked": mutation(
        "the hash chain of the log is not verified on open",
        patch(recovery._require_acknowledged, ("_require_chain(store, anchor, found)", "pass")),
    ),
    "position_reused": mutation(
        "a restarted store hands out a position again in the same incarnation",
        patch(
            recovery.open_anchored,
            before(
                "    opened = RecoveredStore(",
                "if end.position:",
                "    end = end._replace(position=end.position - 1)",
            ),
        ),
    ),
    "incarnation_kept": mutation(
        "an unclean stop without durability keeps the incarnation",
        patch(recovery._begin_incarnation, ("if lost or unclean:", "if lost:")),
    ),
    "token_ahead": mutation(
        "a token names a position that is not durable yet",
        patch(
            Database.position_to_token,
            (
                "self.incarnation, position)",
                "self.incarnation, self.commits.newest_snapshot.position + 1)",
            ),
        ),
    ),
    "retry_unknown": mutation(
        "a commit of unknown outcome is tried again",
        patch(
            Database.run_and_get_commit,
            before(
                "            finally:\n",
                "except Exception as error:",
                '    if getattr(error, "sqlstate", None) != "08007":',
                "        raise",
            ),
        ),
    ),
    "torn_batch": mutation(
        "base rows and derived rows are written in two batches",
        patch(Visibility.write_batch, (_WRITE, _TWO_WRITES)),
    ),
    "trim_past_consumer": mutation(
        "the log is trimmed past its slowest consumer",
        patch(BatchChangeLog._retained_positions, before("        cap = ", "return []")),
    ),
    "catalog_before_data": mutation(
        "a catalog change is visible before it is committed",
        patch(
            BatchCommit._write_schema,
            before(
                "        self._write_batch(",
                "early = self._visibility.published_snapshot._replace(catalog=successor.catalog)",
                "self._visibility.published_snapshot = early",
            ),
        ),
    ),
    "length_unchecked": mutation(
        "a record's length field is believed",
        patch(
            decode_record,
            before(
                "    if length != len(data):\n",
                "if length != len(data):",
                "    return decode_record(data[:length], position)",
            ),
        ),
    ),
    "decimal_key_by_text": mutation(
        "a numeric key is its text, so 1.0 and 1.00 are two keys",
        patch(key_parts._numeric_part, ('"encode_numeric({v})",', '"str({v}).encode()",')),
    ),
    "negative_zero_by_bits": mutation(
        "a float key is its bits, so 0.0 and -0.0 are two keys",
        patch(key_parts._float_part, ("{{v}} + 0.0", "{{v}}")),
    ),
}
