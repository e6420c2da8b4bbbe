"""Bugs of snapshots, conflicts, constraints, locks and savepoints."""

from __future__ import annotations

from belvedere.txn.batch_atomic.commit import BatchCommit
from belvedere.txn.batch_atomic.visibility import Visibility
from belvedere.txn.transaction.foreign_keys import ForeignKeyParticipant
from belvedere.txn.transaction.locks import RowLockTable
from belvedere.txn.transaction.transaction import Transaction
from belvedere.views.indexes.entries import IndexParticipant
from tests.mutations.patch import Mutation, before, mutation, patch

_OBSERVED = "observed = self._hold or self.open_count > own"

MUTATIONS: dict[str, Mutation] = {
    "undo_skipped": mutation(
        "before-images are not published, so snapshots move",
        patch(Visibility.write_batch, (_OBSERVED, "observed = False")),
    ),
    "undo_after_write": mutation(
        "before-images are published after the write",
        patch(
            Visibility.write_batch,
            (
                _OBSERVED,
                "observed, late = False, self._hold or self.open_count > own\n"
                "            images = self._before_images(changes, derived, cleared)",
            ),
            before(
                "            self.written = successor\n",
                "if late:",
                "    self.undo.publish_images(successor.batch, successor.position, images)",
            ),
        ),
    ),
    "undo_purged_early": mutation(
        "before-images are dropped while a snapshot still needs them",
        patch(Visibility._purge_undo, ("if self._open:", "if False:")),
    ),
    "conflict_unchecked": mutation(
        "write-write conflicts are not looked for",
        patch(BatchCommit.require_unchanged, ("if key not in self._undo:", "if True:")),
        patch(BatchCommit._require_no_conflict, before("        for key, _, _, seen in", "return")),
    ),
    "reads_unvalidated": mutation(
        "SERIALIZABLE does not validate its reads",
        patch(BatchCommit._validate_reads, before("        for key in intent.reads:\n", "return")),
    ),
    "ranges_unvalidated": mutation(
        "SERIALIZABLE validates rows but not ranges",
        patch(BatchCommit._validate_reads, ("in intent.ranges:", "in ():")),
    ),
    "unique_at_snapshot": mutation(
        "uniqueness is checked at the snapshot, not at p-1",
        patch(IndexParticipant._require_unique_keys, ("if taken:", "if False:")),
        patch(
            IndexParticipant.single_row_writes,
            (
                "entry, unique = self.build_index_entry, self.unique",
                "entry, unique = self.build_index_entry, False",
            ),
        ),
    ),
    "foreign_key_at_snapshot": mutation(
        "foreign keys are checked at the snapshot, not at p-1",
        patch(
            ForeignKeyParticipant.check,
            before("        if len(changes) == 1:\n", "return"),
        ),
    ),
    "lock_order_inverted": mutation(
        "a deadlock is not looked for: both sides wait",
        patch(RowLockTable._enqueue_request, ("if cycle:", "if False:")),
    ),
    "lock_kept": mutation(
        "locks stay after the transaction has ended",
        patch(RowLockTable.release, ("for lock in held:", "for lock in ():")),
    ),
    "savepoint_keeps_changes": mutation(
        "ROLLBACK TO does not take the changes back",
        patch(Transaction.rollback_to, before("        while len(self._journal)", "return")),
    ),
}
