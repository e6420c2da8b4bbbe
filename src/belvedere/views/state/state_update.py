"""One update of the state of views: additions, new positions, and changefeed entries.

Every driver that changes stored state (the worker's batch, a claim, a repair, a backfill) describes
its step as a `StateUpdate`, and only this module turns it into rows:

- the state rows, with the additions made
- the changefeed entries of those views that keep their changes
- the watermarks that the step sets or removes
- the progress of backfills
- `others`: rows of the driver itself that must be written with them, or not at all (the next claim,
  the next epoch, keys that a backfill has found)

All of it is one batch, so a reader sees state, changefeed and watermark of one position.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from belvedere.catalog.model import View
from belvedere.kv.batch import Write
from belvedere.txn.contracts import KeyRange, MakeWrites, Reader
from belvedere.views.changefeed.entries import Addition, build_changefeed_writes
from belvedere.views.state.additions import build_state_row_writes
from belvedere.views.state.backfill_progress import BackfillProgress, build_progress_write
from belvedere.views.state.watermarks import build_watermark_write


class Commits(Protocol):
    """What an update needs of a commit protocol."""

    def derive(
        self, make: MakeWrites, unread: Sequence[Write] = (), cleared: Sequence[KeyRange] = ()
    ) -> None: ...


class AddingCommits(Protocol):
    """What an update of state that cannot be read yet needs of a commit protocol."""

    def write_additions(
        self, make: Callable[[Reader], tuple[Sequence[Write], Sequence[Addition]]]
    ) -> None: ...


@dataclass(frozen=True, slots=True)
class ChangefeedStep:
    """The position that these views reach with the additions of an update."""

    views: Sequence[View]
    position: int


@dataclass(frozen=True, slots=True)
class StateUpdate:
    """`state_rows` are the rows after the additions, where the driver has computed them
    already; without, they are read where the update is written. `changefeed` is None for views that
    are being built, whose changes nobody has asked for. A watermark or a progress of None is
    removed.
    """

    additions: Sequence[Addition]
    state_rows: Sequence[Write] | None = None
    changefeed: ChangefeedStep | None = None
    watermarks: Mapping[int, int | None] = field(default_factory=dict)
    progress: Mapping[int, BackfillProgress | None] = field(default_factory=dict)
    others: Sequence[Write] = ()

    def build_all_writes(self, reader: Reader) -> list[Write]:
        """The rows of the update on top of what `reader` shows."""
        rows = self.state_rows
        if rows is None:
            rows = build_state_row_writes(reader, self.additions)
        return [*rows, *self.build_metadata_writes(reader)]

    def build_metadata_writes(self, reader: Reader) -> list[Write]:
        """The rows of the update without the state itself."""
        feed = self.changefeed
        return [
            *(
                build_changefeed_writes(reader, feed.views, feed.position, self.additions)
                if feed
                else ()
            ),
            *self.others,
            *(build_progress_write(view, place) for view, place in self.progress.items()),
            *(build_watermark_write(id_, position) for id_, position in self.watermarks.items()),
        ]


def commit_state_update(
    commits: Commits,
    make: Callable[[Reader], StateUpdate | None],
    cleared: Sequence[KeyRange] = (),
) -> bool:
    """Write the update that `make` describes on the newest state, all or none of it. None, which
    `make` returns when the state is no longer what it expects, writes nothing and gives False. The
    `cleared` ranges hold state that the update replaces as a whole."""
    written = [False]

    def build_update_writes(newest: Reader) -> Sequence[Write]:
        update = make(newest)
        written[:] = [update is not None]
        return () if update is None else update.build_all_writes(newest)

    commits.derive(build_update_writes, cleared=cleared)
    return written[0]


def commit_unread_state(commits: Commits, update: StateUpdate) -> None:
    """Write the update of a view that is being built on a batch-atomic store: nobody reads its
    state, so that the undo index need not hold what it was."""
    assert update.state_rows is not None
    commits.derive(update.build_metadata_writes, update.state_rows)


def commit_update_as_additions(
    commits: AddingCommits, make: Callable[[Reader], StateUpdate]
) -> None:
    """The same for a view that is being built on a row-atomic store. Its state cannot be read
    there, since writers add to it all the time: the additions themselves are written."""

    def build_update_writes(newest: Reader) -> tuple[list[Write], Sequence[Addition]]:
        update = make(newest)
        return update.build_metadata_writes(newest), update.additions

    commits.write_additions(build_update_writes)
