"""A stream of a view's own changes: `con.subscribe(view, from_position)`.

    with con.subscribe("totals") as changes:
        for position, row, weight in changes:
            ...                                  # weight 1: row inserted; -1: row deleted

The changes after a position, in order of positions, then later ones as they commit: the rows of one
position are returned together, deleted rows before inserted ones. A subscriber resumes from the
position it had reached; when the view no longer stores the changes since then, it gets an error and
has to read the view again.

Runs in the thread that iterates. `close` may be called from any thread.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from belvedere import interrupts
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Maintenance, View
from belvedere.errors import Error, InvalidInput, Unavailable
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.run import Rows
from belvedere.session.materialized.change_stream import Subscription, ViewChange
from belvedere.session.rights.denials import not_the_owner
from belvedere.txn.contracts import Reader
from belvedere.types import Row
from belvedere.views.changefeed import entries as stream
from belvedere.views.changefeed import row_atomic
from belvedere.views.changefeed.related_entries import RelatedEntries, find_related_entry_rule
from belvedere.views.registry.transitions import edit_view_maintenance
from belvedere.views.state.watermarks import read_applied_position

if TYPE_CHECKING:
    from belvedere.session.session import Session

POLL_S_MAX = 0.25
"""The longest sleep between reads: for changes that no notification announces."""


class StoreSubscription(Subscription):
    """To a view (`ViewSubscription`) or a table of the open store."""

    def __init__(
        self,
        session: Session,
        position: int,
        timeout_s: float | None,
        clock: Callable[[], float] = time.monotonic,
        shown: Callable[[Error], Exception] = lambda error: error,
    ) -> None:
        super().__init__(position, timeout_s, shown)
        self._session = session
        self._clock = clock

    def _release_source(self) -> None:
        """The session holds nothing between reads."""

    def _wait_for_changes(self, timeout_s: float | None) -> list[ViewChange]:
        deadline = None if timeout_s is None else self._clock() + timeout_s
        while not self._closed.is_set():
            host = self._session.host
            seen, moves = host.position, host.views.deferred.moves
            try:
                found = self._read_new_changes()
            except Error as error:
                shown = self._shown(error)
                raise shown from None
            if found:
                return found
            left = POLL_S_MAX if deadline is None else deadline - self._clock()
            if left <= 0:
                break
            self._wait_for_commit_or_batch(seen, moves, min(left, POLL_S_MAX))
        return []

    def _wait_for_commit_or_batch(self, seen: int, moves: int, timeout_s: float) -> None:
        if not self._session.host.visibility.wait_past(seen, timeout_s):
            self._closed.wait(timeout_s / 10)  # the store may have ended
        interrupts.check_statement()

    @abstractmethod
    def _read_new_changes(self) -> list[ViewChange]:
        """The changes after the last position read."""


class ViewSubscription(StoreSubscription):
    """Created by `open_view_subscription`."""

    def __init__(
        self,
        session: Session,
        view: View,
        position: int,
        timeout_s: float | None,
        shown: Callable[[Error], Exception] = lambda error: error,
    ) -> None:
        super().__init__(session, position, timeout_s, shown=shown)
        self._view = view

    def _wait_for_commit_or_batch(self, seen: int, moves: int, timeout_s: float) -> None:
        if self._view.maintenance is Maintenance.DEFERRED:
            self._session.host.views.deferred.wait_for_batch(moves, timeout_s)
        else:
            super()._wait_for_commit_or_batch(seen, moves, timeout_s)

    def _read_new_changes(self) -> list[ViewChange]:
        """The changes after the last position read."""
        with self._session.host.begin() as reader:
            view = reader.catalog.get(self._view.id)
            log = self._session.host.log
            kept = (
                row_atomic.find_retention_start(log, reader, view)
                if isinstance(view, View)
                else None
            )
            if not isinstance(view, View) or kept is None:
                raise Unavailable(
                    "the changes of this view are no longer kept",
                    sqlstate="55000",
                    hint="it was dropped or replaced, or keep_changes was set to 'off'",
                    view=self._view.name,
                )
            require_position_retained(kept, self._read, view)
            entries = row_atomic.read_logged_or_stored_entries(log, reader, view, self._read)
            reached = read_applied_position(reader, view) if view.group else reader.position
            reached = max(reached or 0, entries[-1].position if entries else 0)
            found = list(self._compute_row_changes(reader, view, entries)) if entries else []
            self._read = max(self._read, reached)
            if not found:
                self.position = self._read
            return found

    def _compute_row_changes(
        self, reader: Reader, view: View, entries: Sequence[stream.ChangefeedEntry]
    ) -> Iterator[ViewChange]:
        catalog = reader.catalog
        rows = compile_plan(
            catalog, self._session.host.views.registry.build_reading_plan(catalog, view)
        )
        state = stream.compute_states_before(reader, entries)
        kinship = find_related_entry_rule(catalog, view)
        related = None if kinship is None else RelatedEntries(kinship, reader, state)
        for entry in entries:
            before, after = stream.apply_entry_to_states(state, entry)
            beside = {} if related is None else related.find_related_entries(before, state)
            went = self._compute_shown_rows(rows, reader, view, before | beside)
            came = self._compute_shown_rows(rows, reader, view, after | beside)
            for row, weight in stream.compute_net_row_changes(went, came):
                yield ViewChange(entry.position, row, weight)

    def _compute_shown_rows(
        self, rows: Rows, reader: Reader, view: View, state: dict[bytes, bytes | None]
    ) -> list[Row]:
        only = stream.KeySubsetReader(reader, view.id, state)
        return list(rows(self._session.make_run_context(only, ())))


def open_view_subscription(
    session: Session,
    name: str,
    from_position: int | None = None,
    timeout_s: float | None = None,
    shown: Callable[[Error], Exception] = lambda error: error,
) -> ViewSubscription:
    """The changes of a view after a position (None: from now on). A view without a changefeed gets
    one from now on."""
    schema, _, last = name.rpartition(".")
    if session.host.catalog.find_relation(last, schema or "public") is None:
        raise InvalidInput("table or materialized view does not exist", sqlstate="42P01", name=name)
    view = session.host.catalog.require_relation(View, last, schema or "public")
    if view.options.keep_changes is None:
        session.transactions.require_writable("begin to keep the changes of a view")
        rights = session.identity.find_rights_unless_superuser(session.host.catalog)
        if rights is not None and not rights.owns(view):
            raise not_the_owner(view)
        session.host.change_schema(lambda edit: _enable_changefeed(edit, view))
        view = session.host.catalog.require_relation(View, last, schema or "public")
    with session.host.begin() as reader:
        kept = row_atomic.find_retention_start(session.host.log, reader, view)
        assert kept is not None, "a view that keeps its changes says from where on"
        log = session.host.log
        at = (
            read_applied_position(reader, view)
            if view.group
            else row_atomic.find_shown_position(log, reader, view)
        )
        position = from_position if from_position is not None else at
        assert position is not None
        require_position_retained(kept, position, view)
    return ViewSubscription(session, view, position, timeout_s, shown)


def _enable_changefeed(edit: CatalogEdit, view: View) -> None:
    now = edit.catalog.require_relation(View, view.name, _find_schema_name(edit, view))
    options = now.options.with_text("keep_changes", str(stream.DEFAULT_RETAINED_POSITIONS))
    edit_view_maintenance(edit, now, now.maintenance, options)


def _find_schema_name(edit: CatalogEdit, view: View) -> str:
    return next(schema.name for schema in edit.catalog.schemas if schema.id == view.schema)


def require_position_retained(kept: int, position: int, view: View) -> None:
    if position < kept:
        raise InvalidInput(
            "position is no longer kept for this view",
            sqlstate="22023",
            hint="read the view with freshness 'latest', and subscribe from con.token",
            view=view.name,
            position_wanted=position,
            first=kept,
        )
