"""The views of an open database: creating, backfilling and maintaining them.

A database has one ViewService. Immediate views are participants of every commit; the service
maintains deferred ones, by a worker thread, by REFRESH, or for one read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.definitions import IndexDefinition, KeyPartDefinition
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Maintenance, View
from belvedere.catalog.rights.ownership import assign_owner
from belvedere.catalog.view_options import parse_options
from belvedere.codec import keyspace
from belvedere.errors import Error
from belvedere.kv.batch import Write
from belvedere.txn.contracts import Participant, Reader
from belvedere.txn.transaction.transaction import Transaction
from belvedere.views.backfill.contracts import HostDatabase, JobBackfill, StoreBackfill
from belvedere.views.backfill.create_auxiliary import find_or_create_auxiliaries
from belvedere.views.backfill.driver import BackfillDriver
from belvedere.views.changefeed.entries import build_trim_writes
from belvedere.views.changefeed.row_atomic import find_addition_log
from belvedere.views.compile.compile_view import find_untracked_dependency
from belvedere.views.compile.defined_view import NewView
from belvedere.views.deferred.driver import DeferredMaintenance
from belvedere.views.deferred.worker import MaintenanceWorker
from belvedere.views.delta.delta_tree import FullRecompute
from belvedere.views.delta.leaf_lookups import IndexRequirement
from belvedere.views.read.deferred_readers import (
    build_caught_up_reader,
    build_tables_at_watermark,
)
from belvedere.views.registry.row_atomic_locks import build_row_atomic_participants
from belvedere.views.state.schedule_groups import find_or_allocate_group
from belvedere.views.state.watermarks import list_ready_deferred_views, require_applied_position

TRIMMED_ENTRIES_MAX = 10_000


class ViewService:
    """The views of one database. `backfill` constructs the backfills of the database's store."""

    def __init__(
        self, host: HostDatabase, backfill: Callable[[HostDatabase], StoreBackfill]
    ) -> None:
        engine, registry = host.engine, host.registry
        self._host = host
        self._commits = engine.commits
        self._log = engine.log
        self._share = 1.0
        self._worker: MaintenanceWorker | None = None
        self.registry = registry
        self.errors: dict[int, Error] = {}
        self.deferred = DeferredMaintenance(
            engine.commits, engine.log, registry, engine.visibility, self.errors
        )
        self.backfills = BackfillDriver(host, backfill(host), self.deferred, lambda: self._share)

    def list_view_participants(
        self, catalog: Catalog, relations: frozenset[int]
    ) -> tuple[Participant, ...]:
        """The views that a commit of these relations maintains."""
        if self._host.engine.row_atomic:
            node = self._host.engine.node
            return build_row_atomic_participants(self.registry, catalog, relations, self._log, node)
        return self.registry.build_view_participants(catalog, relations, self._log)

    def open_external_backfill(self, work: Path) -> JobBackfill:
        """Backfills by other processes, whose jobs have their directories in `work`."""
        return self.backfills.store.open_external_backfill(self.deferred, work)

    # -- creating ---------------------------------------------------------------------------

    def create_view(
        self,
        name: str,
        definition: str,
        maintenance: Maintenance = Maintenance.IMMEDIATE,
        *,
        schema: str = "public",
        options: dict[str, str] | None = None,
        columns: Sequence[str] = (),
        reads: Sequence[int] = (),
    ) -> int:
        """Define a materialized view, with the indexes that its maintenance requires; returns when
        it is backfilled. `reads` are the views that its definition names."""
        given = parse_options(options or {})
        one = NewView(name, definition, maintenance, schema, given, tuple(columns), tuple(reads))
        return self.create_views([one])[0]

    def create_views(self, wanted: Sequence[NewView]) -> list[int]:
        """Define several views in one step; those that can are backfilled by one scan of their
        table."""
        return self._host.change_schema(
            lambda edit: [self.create_view_in_edit(edit, one) for one in wanted]
        )

    def create_view_in_edit(self, edit: CatalogEdit, new: NewView) -> int:
        """Define a view as a part of a catalog change, with what its maintenance requires."""
        defined = self.registry.build_defined_view(edit.catalog, new)
        shared = self.registry.list_shared_index_ids(edit.catalog, defined.definition)
        made = [self._create_required_index(edit, one) for one in defined.required_indexes]
        auxiliary_views = find_or_create_auxiliaries(self.registry, edit, defined)
        supporting = tuple(dict.fromkeys([*shared, *made, *auxiliary_views]))
        immediate = new.maintenance is Maintenance.IMMEDIATE
        group = 0 if immediate else find_or_allocate_group(edit, new.options.schedule)
        view = edit.create_view(replace(defined.definition, supporting_objects=supporting))
        found = edit.catalog.require_relation(View, new.name, new.schema)
        orders = defined.compiled.stored_orders
        edit.put(
            msgspec.structs.replace(
                found, group=group, auxiliary_views=auxiliary_views, orders=orders
            )
        )
        assign_owner(edit, new.owner)
        self.registry.cache_compiled_definition(edit.catalog, view, defined.compiled)
        return view

    def _create_required_index(self, edit: CatalogEdit, requirement: IndexRequirement) -> int:
        table = edit.catalog.table(requirement.relation)
        names = [table.columns[slot].name for slot in requirement.slots]
        definition = IndexDefinition(
            table.name,
            tuple(KeyPartDefinition(column) for column in names),
            schema=next(s.name for s in edit.catalog.schemas if s.id == table.schema),
        )
        return edit.create_index(definition, hidden=True)

    # -- deferred views -----------------------------------------------------------------------

    def list_deferred_views(self) -> tuple[View, ...]:
        return list_ready_deferred_views(self._host.catalog)

    def read_view_watermark(self, view: View) -> int:
        """The position a view shows: its group's watermark; the newest for an immediate view."""
        if view.maintenance is Maintenance.IMMEDIATE:
            return self._host.position
        with self._host.begin() as reader:
            return require_applied_position(reader, view)

    def catch_up_view(self, view: View) -> int:
        """Bring a deferred view, and those that share its watermark, to the published position;
        returns the position it has then applied."""
        return self.deferred.catch_up_unit_of_view(view)

    def find_untracked_dependency(self, view: View) -> str | None:
        """What in the view depends on more than the rows of logged tables, such as now() or a
        foreign table; None: nothing."""
        tree = self.registry.get_maintenance_plan(self._host.catalog, view).tree
        return find_untracked_dependency(tree.plan) if isinstance(tree, FullRecompute) else None

    def repair_view(self, view: View) -> int:
        """Correct the stored state of a view to what its tables give; returns how many entries
        were wrong."""
        while True:
            with self._host.begin() as transaction:
                tables, _ = self.open_tables_at_watermark(transaction, view)
                wrong = self.registry.try_repair_view(self._commits, view, tables, transaction)
            if wrong is not None:
                return wrong

    def measure_stored_size(self, view: View) -> tuple[int, int]:
        """Entries and bytes of a view's state: keys and values, as they are stored."""
        with self._host.begin() as reader:
            sizes = [
                len(key) + len(value)
                for batch in reader.scan(*keyspace.relation_range(view.id))
                for key, value in batch
            ]
        return len(sizes), sum(sizes)

    def open_caught_up_reader(self, transaction: Transaction, views: Sequence[View]) -> Reader:
        """The transaction with deferred views brought to its position, for one read."""
        return build_caught_up_reader(self.registry, self._log, transaction, views)

    def open_tables_at_watermark(self, transaction: Transaction, view: View) -> tuple[Reader, int]:
        """A view's tables at the position the view has reached, and that position."""
        return build_tables_at_watermark(self.registry, self._log, transaction, view)

    def trim_changefeeds(self) -> None:
        """Forget changes of views that are older than the views keep them."""
        position = self._host.position
        for view in self._host.catalog.views:
            kept = view.options.keep_changes
            if kept is not None and position > kept:
                forget = partial(_build_trim_writes, view.id, position - kept)
                self._commits.derive(forget)

    def find_first_retained_log_position(self) -> int | None:
        """The position from which on views have their changes in the log itself, and want to keep
        them; None: none has."""
        catalog = self._host.catalog
        views = [view for view in catalog.views if find_addition_log(self._log, view) is not None]
        kept = [n for view in views if (n := view.options.keep_changes) is not None]
        return self._host.position - max(kept) if kept else None

    @property
    def maintenance_share(self) -> float:
        """The largest share of its time that the worker may use."""
        return self._share

    @maintenance_share.setter
    def maintenance_share(self, share: float) -> None:
        self._share = share
        if self._worker is not None:
            self._worker.share = share

    def start_or_wake_worker(self) -> None:
        """Start the worker once there is something for it to do; wake it up."""
        if self._worker is None and self.list_deferred_views():
            visibility = self._host.engine.visibility
            self._worker = MaintenanceWorker(self.deferred, visibility, self._host.is_closed)
            self._worker.share = self._share
        elif self._worker is not None:
            self._worker.wake_up()

    def join_worker(self) -> None:
        """Wait for the worker to end; the database is being closed."""
        if self._worker is not None:
            self._worker.stop_and_join_threads()


def _build_trim_writes(view: int, through: int, reader: Reader) -> Sequence[Write]:
    return build_trim_writes(reader, view, through, TRIMMED_ENTRIES_MAX)
