"""State transitions of views, in the commit of the catalog change that makes them.

    immediate -> deferred     joins its group at this commit's position
    deferred -> immediate     the log after the view's watermark is applied in this commit
    one schedule -> another   keeps its watermark, detached from the new group until both are equal
    created in a transaction  filled by its commit, from the state after it
    built                     an immediate view gets the rest of the log; a deferred one joins
    dropped                   its watermark is deleted, so that it no longer holds back the log

A view joins at equal watermarks only. Where the group has none yet, the view's becomes the group's;
otherwise the view keeps one of its own, and the batch that brings both to one position removes it.
The last view that leaves a group removes the group's watermark and claim.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from belvedere.catalog import model
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import CATALOG_RELATION, Maintenance, ObjectState, View
from belvedere.catalog.view_options import ViewOptions, encode_options
from belvedere.codec import keyspace
from belvedere.txn.contracts import (
    BackfillParticipant,
    ChangeLog,
    LockRequest,
    Participant,
    Reader,
    RowChange,
    Rows,
    Writer,
)
from belvedere.views.changefeed.entries import (
    ChangefeedParticipant,
    delete_changefeed,
    start_changefeed,
)
from belvedere.views.maintain.log_window import build_reader_before_changes, consolidate_net_changes
from belvedere.views.registry.created_objects import compute_created_rows
from belvedere.views.registry.maintainer_provider import MaintainerProvider
from belvedere.views.state.schedule_groups import find_or_allocate_group
from belvedere.views.state.watermarks import (
    backfill_progress_key,
    follows_log,
    put_watermark,
    read_applied_position,
    read_watermark,
)

_CATALOG_PREFIX = keyspace.row_prefix(CATALOG_RELATION)


def edit_view_maintenance(
    edit: CatalogEdit, view: View, maintenance: Maintenance, options: ViewOptions
) -> None:
    """Make a view immediate or deferred, or give it another schedule; the commit
    (`ViewTransitionParticipant`) brings its state along."""
    group = 0
    if maintenance is Maintenance.DEFERRED:
        same = view.group and view.options.schedule == options.schedule
        group = view.group if same else find_or_allocate_group(edit, options.schedule)
    stored = encode_options(options, view.index, view.replaces)
    edit.put(
        msgspec.structs.replace(view, maintenance=maintenance, group=group, stored_options=stored)
    )


class ViewTransitionParticipant:
    """The participant of catalog changes that moves views between states and groups."""

    checks = True

    def __init__(self, registry: MaintainerProvider, log: ChangeLog) -> None:
        self._registry = registry
        self._log = log

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Sequence[LockRequest]:
        return ()

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        """Refuse a catalog under which a view would have another meaning or layout."""
        self._registry.require_view_meaning_unchanged(
            reader.catalog, _list_changed_plain_view_ids(changes)
        )

    def find_created(self, changes: Sequence[RowChange]) -> dict[int, model.AnyObject]:
        """Indexes and views that are ready when they are created. An index of a table that is
        created too is none: all rows of that table are changes."""
        made = [c.new for c in changes if c.old is None and c.key.startswith(_CATALOG_PREFIX)]
        items = [model.decode(stored) for stored in made if stored is not None]
        tables = {item.id for item in items if isinstance(item, model.Table)}
        return {
            item.id: msgspec.structs.replace(item, state=ObjectState.BUILDING)
            for item in items
            if isinstance(item, model.Index | View)
            and item.state is ObjectState.READY
            and not (isinstance(item, model.Index) and item.table in tables)
        }

    def backfill_created(self, created: Collection[int], after: Reader) -> Rows:
        return compute_created_rows(self._registry, after.catalog, created, after)

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        given: dict[int, int] = {}  # watermarks that groups get in this very commit
        created = writer.shared_results.get(BackfillParticipant)
        if isinstance(created, dict):
            for item in created.values():
                self._join_created_view(item, reader, writer, given)
        for old, new in decode_changed_views(changes):
            if new is None or new.state is ObjectState.DROPPED:
                if old.state is not ObjectState.DROPPED:
                    self._leave_maintenance_group(old, reader, writer)
                    delete_changefeed(reader, writer, old.id)
                continue
            if follows_log(old) and not follows_log(new):
                self._apply_pending_log(old, new, reader, writer)
                self._leave_maintenance_group(old, reader, writer)
            elif new.state is ObjectState.READY and follows_log(new):
                touched = any(change.relation in new.inputs for change in changes)
                start = reader.position + (not touched)
                self._join_maintenance_group(old, new, start, reader, writer, given)
            start_or_end_changefeed(old, new, reader, writer)

    def _join_created_view(
        self, item: model.AnyObject, reader: Reader, writer: Writer, given: dict[int, int]
    ) -> None:
        """Let a view that this commit creates begin at its position."""
        if not isinstance(item, View):
            return
        at = reader.position + 1
        if item.options.keep_changes is not None:
            start_changefeed(writer, item.id, at)
        if item.maintenance is Maintenance.DEFERRED:
            self._share_or_set_watermark(item, at, reader, writer, given)

    def _share_or_set_watermark(
        self, view: View, at: int, reader: Reader, writer: Writer, given: dict[int, int]
    ) -> None:
        """The watermark of the group, where that is equal or not there yet; else the view's own."""
        theirs = given.get(view.group, read_watermark(reader, view.group))
        if theirs is None or theirs == at:
            put_watermark(writer, view.group, at)
            given[view.group] = at
            writer.delete(keyspace.watermark_key(view.id))
        else:
            put_watermark(writer, view.id, at)

    def _join_maintenance_group(
        self,
        old: View,
        new: View,
        start: int,
        reader: Reader,
        writer: Writer,
        given: dict[int, int],
    ) -> None:
        """Join a deferred view to its group, unless it is a member already. `start`: the position
        that an immediate view has, which does not take the changes of this commit."""
        was_there = follows_log(old) and old.state is ObjectState.READY
        if was_there and old.group == new.group:
            return
        at = read_applied_position(reader, old) if follows_log(old) else start
        assert at is not None, "what follows the log has a watermark"
        if was_there:
            self._leave_maintenance_group(old, reader, writer)
        self._share_or_set_watermark(new, at, reader, writer, given)

    def _leave_maintenance_group(self, old: View, reader: Reader, writer: Writer) -> None:
        writer.delete(keyspace.watermark_key(old.id))
        if old.state is ObjectState.BUILDING:
            writer.delete(backfill_progress_key(old.id))
        left = [v for v in reader.catalog.views if v.group == old.group and v.id != old.id]
        if old.group and not left:
            writer.delete(keyspace.watermark_key(old.group))
            writer.delete(keyspace.claim_key(old.group))

    def _apply_pending_log(self, old: View, new: View, reader: Reader, writer: Writer) -> None:
        mark = read_applied_position(reader, old)
        assert mark is not None, "what follows the log has a watermark"
        if mark == reader.position:
            return
        records = self._log.read_written(mark, reader.position)
        missed = consolidate_net_changes(
            ([record.data] for record in records), mark, frozenset(new.inputs)
        )
        if not missed:
            return
        before = build_reader_before_changes(reader, missed, self._registry.indexes)
        maintainer: Participant = self._registry.get_view_maintainer(reader.catalog, new)
        if _has_active_changefeed(old) and new.options.keep_changes is not None:
            maintainer = ChangefeedParticipant(new.id, maintainer)
        maintainer.writes(missed, before, writer)


def start_or_end_changefeed(old: View, new: View, reader: Reader, writer: Writer) -> None:
    """Changes are kept from the commit on that asks for it."""
    if _has_active_changefeed(new) and not _has_active_changefeed(old):
        at = read_applied_position(reader, old) if follows_log(old) and follows_log(new) else None
        start_changefeed(writer, new.id, reader.position + 1 if at is None else at)
    elif old.options.keep_changes is not None and new.options.keep_changes is None:
        delete_changefeed(reader, writer, old.id)


def _has_active_changefeed(view: View) -> bool:
    return view.options.keep_changes is not None and view.state is ObjectState.READY


def _list_changed_plain_view_ids(changes: Sequence[RowChange]) -> list[int]:
    old = [c.old for c in changes if c.old and c.key.startswith(_CATALOG_PREFIX)]
    return [item.id for item in map(model.decode, old) if isinstance(item, model.PlainView)]


def decode_changed_views(changes: Sequence[RowChange]) -> list[tuple[View, View | None]]:
    """Views before and after the catalog changes among these."""
    found: list[tuple[View, View | None]] = []
    for change in changes:
        if change.old is not None and change.key.startswith(_CATALOG_PREFIX):
            old = model.decode(change.old)
            new = None if change.new is None else model.decode(change.new)
            if isinstance(old, View):
                assert new is None or isinstance(new, View)
                found.append((old, new))
    return found
