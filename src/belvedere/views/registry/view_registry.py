"""The view registry: compiled definitions, maintainers, participants and reading plans of views.

Creating a view: (1) a catalog entry in state BUILDING, which is neither read nor maintained; (2)
backfill at a snapshot, written with a watermark of that position; (3) catching up from the log; (4)
READY. A deferred view is maintained from its watermark on. An immediate view changes to READY in
one commit, whose section applies the rest of the log, so that no change falls between the last log
range and the first transaction that maintains the view (`views.registry.transitions`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import msgspec

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.model import CATALOG_RELATION, Maintenance, ObjectState, View
from belvedere.catalog.view_options import form_of
from belvedere.errors import Error, InvalidInput, Unavailable, Unsupported
from belvedere.plan import nodes as n
from belvedere.plan import transform
from belvedere.txn.contracts import (
    ChangeLog,
    CommitProtocol,
    Participant,
    ParticipantsFor,
    Reader,
)
from belvedere.txn.history.derived_rows import DerivedRows
from belvedere.types import SqlType
from belvedere.views.changefeed.entries import ChangefeedParticipant
from belvedere.views.compile.auxiliary_views import Auxiliary
from belvedere.views.compile.compile_view import (
    MaintenancePlan,
    compile_auxiliary,
    compile_view,
)
from belvedere.views.compile.defined_view import DefinedView, NewView
from belvedere.views.compile.required_indexes import find_view_required_indexes
from belvedere.views.cost.tier_selector import TierSelector
from belvedere.views.delta.delta_tree import FullRecompute, collect_relations
from belvedere.views.indexes.unique_view_index import UniqueViewIndexParticipant
from belvedere.views.maintain.maintainer import ViewMaintainer
from belvedere.views.operators.auxiliary_readers import AuxiliaryMatch, AuxiliaryViews
from belvedere.views.registry.transitions import ViewTransitionParticipant
from belvedere.views.state.additions import EmptyReader, compute_correcting_additions
from belvedere.views.state.state_update import ChangefeedStep, StateUpdate, commit_state_update
from belvedere.views.state.watermarks import (
    build_next_epoch_write,
    follows_log,
    read_applied_position,
    read_maintenance_epoch,
)

Bind = Callable[[Catalog, str], n.Node]
"""The text of a query to its bound plan."""


def refuse_view_definitions(catalog: Catalog, text: str) -> n.Node:
    """The default `Bind` of a database without a SQL binder: refuses every definition."""
    raise Unsupported("view without the SQL part", definition=text)


def hide_later_columns(catalog: Catalog, view: View) -> Catalog:
    """The catalog as the view's definition sees it: columns added later are hidden."""
    changed: dict[int, model.AnyObject | None] = {}
    for id_, width in zip(view.inputs, view.widths):
        table = catalog.table(id_)
        if len(table.columns) > width:
            later = [msgspec.structs.replace(c, hidden=True) for c in table.columns[width:]]
            columns = (*table.columns[:width], *later)
            changed[id_] = msgspec.structs.replace(table, columns=columns)
    return catalog.with_objects(changed) if changed else catalog


class _CompiledDefinition(NamedTuple):
    """A view's compiled definition, and the catalog versions it was compiled against; for an
    auxiliary view also what it stores."""

    uses: object
    compiled: MaintenancePlan
    auxiliary: Auxiliary | None


class _CachedMaintainer(NamedTuple):
    """A view's maintainer, and the versions of the indexes it was built for."""

    read: _CompiledDefinition
    indexes: object
    maintainer: ViewMaintainer


def list_definition_versions(catalog: Catalog, view: View) -> object:
    """Versions of the view, its tables, and the views it reads: all that its meaning and the layout
    of its state depend on."""
    tables = [(id_, catalog.objects[id_].version) for id_ in view.inputs]
    named = [(id_, catalog.get(id_)) for id_ in view.reads]
    return (view.definition, view.part, view.form, tables, named)


def _list_index_and_auxiliary_versions(catalog: Catalog, view: View) -> object:
    """Versions of the indexes and auxiliary views that maintenance reads."""
    indexes = [
        [(i.id, i.version, i.state) for i in catalog.table_indexes(id_)] for id_ in view.inputs
    ]
    return (indexes, [(id_, catalog.get(id_)) for id_ in view.auxiliary_views])


class ViewRegistry:
    """Compiles views and caches what maintains and reads them. `bind` turns a definition into a
    plan."""

    def __init__(self, bind: Bind, indexes: ParticipantsFor) -> None:
        """`indexes` gives the participants that derive index entries. Those of `self.indexes`
        derive auxiliary views too: all state besides tables that maintenance reads."""
        self._bind = bind
        self._index_participants = indexes
        self.indexes: ParticipantsFor = self._get_all_deriving_participants
        self._maintainers: dict[int, _CachedMaintainer] = {}
        self._definitions: dict[int, _CompiledDefinition] = {}
        self.tiers = TierSelector()

    def get_maintenance_plan(self, catalog: Catalog, view: View) -> MaintenancePlan:
        return self._get_compiled_definition(catalog, view).compiled

    def get_view_maintainer(self, catalog: Catalog, view: View) -> ViewMaintainer:
        """The view's maintainer, built again only when something it uses has changed."""
        memo_key = ("view", view.id)
        found = catalog.derived_cache.get(memo_key)
        if found is None:
            read, indexes = (
                self._get_compiled_definition(catalog, view),
                _list_index_and_auxiliary_versions(catalog, view),
            )
            known = self._maintainers.get(view.id)
            if known is None or known.read is not read or known.indexes != indexes:
                kept = self._match_ready_auxiliaries(catalog, view, read.compiled)
                made = ViewMaintainer(
                    catalog, view, read.compiled, self._build_participants_getter(view), kept
                )
                known = self._maintainers[view.id] = _CachedMaintainer(read, indexes, made)
            found = catalog.derived_cache[memo_key] = known.maintainer
        return cast(ViewMaintainer, found)

    def _get_compiled_definition(self, catalog: Catalog, view: View) -> _CompiledDefinition:
        """The definition compiled for this catalog; Unavailable when the view is stored in another
        layout."""
        memo_key = ("view read", view.id)
        found = catalog.derived_cache.get(memo_key)
        if found is None:
            uses = list_definition_versions(catalog, view)
            found = self._definitions.get(view.id)
            if found is None or found.uses != uses:
                compiled, auxiliary = self._compile_view_or_auxiliary(catalog, view)
                _require_stored_layout(view, compiled)
                found = self._definitions[view.id] = _CompiledDefinition(uses, compiled, auxiliary)
            catalog.derived_cache[memo_key] = found
        return cast(_CompiledDefinition, found)

    def _compile_view_or_auxiliary(
        self, catalog: Catalog, view: View
    ) -> tuple[MaintenancePlan, Auxiliary | None]:
        compiled = self._bind_and_compile_view(catalog, view)
        if not view.part:
            return compiled, None
        auxiliary = compiled.required_auxiliaries[view.part - 1]
        return compile_auxiliary(auxiliary), auxiliary

    def bind_definition(self, catalog: Catalog, view: View) -> n.Node:
        """The plan of a view's definition over base tables, as it is compiled."""
        return self._bind(hide_later_columns(catalog, view), view.definition)

    def _bind_and_compile_view(self, catalog: Catalog, view: View) -> MaintenancePlan:
        seen = hide_later_columns(catalog, view)
        plan, on_view = self._bind(seen, view.definition), bool(view.reads)
        return compile_view(plan, view.form, seen, on_view=on_view)

    # -- auxiliary views ----------------------------------------------------------------------

    def get_auxiliary_definition(self, catalog: Catalog, view: View) -> Auxiliary:
        """What an auxiliary view stores."""
        found = self._get_compiled_definition(catalog, view).auxiliary
        assert found is not None
        return found

    def _match_ready_auxiliaries(
        self, catalog: Catalog, view: View, compiled: MaintenancePlan
    ) -> AuxiliaryViews:
        """The auxiliary views of a view that are backfilled."""
        pairs = zip(compiled.required_auxiliaries, view.auxiliary_views)
        return AuxiliaryViews(
            catalog,
            view.id,
            tuple(
                AuxiliaryMatch(one, self.get_auxiliary_definition(catalog, found), id_)
                for one, id_ in pairs
                if isinstance(found := catalog.get(id_), View) and found.state is ObjectState.READY
            ),
        )

    def _get_all_deriving_participants(
        self, catalog: Catalog, relations: frozenset[int]
    ) -> tuple[Participant, ...]:
        return self._get_deriving_participants(catalog, relations, None)

    def _build_participants_getter(self, view: View) -> ParticipantsFor:
        """The participants that derive the indexes and the auxiliary views of this view and no
        others. Auxiliary views depend only on earlier ones, so the recursion ends."""
        return lambda catalog, relations: self._get_deriving_participants(catalog, relations, view)

    def _get_deriving_participants(
        self, catalog: Catalog, relations: frozenset[int], of: View | None
    ) -> tuple[Participant, ...]:
        memo_key = ("deriving", relations, None if of is None else of.id)
        found = catalog.derived_cache.get(memo_key)
        if found is None:
            views = [
                view
                for view in catalog.views
                if view.part
                and view.state is ObjectState.READY
                and (of is None or view.id in of.auxiliary_views)
                and relations.intersection(view.inputs)
            ]
            found = (
                *self._index_participants(catalog, relations),
                *(self.get_view_maintainer(catalog, view) for view in views),
            )
            catalog.derived_cache[memo_key] = found
        return cast(tuple[Participant, ...], found)

    # -- defining -----------------------------------------------------------------------------

    def build_defined_view(self, catalog: Catalog, new: NewView) -> DefinedView:
        """The definition compiled; Unsupported when it cannot be kept."""
        plan = self._bind_new_view(catalog, new)
        compiled = self._compile_bound_plan(catalog, new, plan)
        names = list(new.columns) or [field.name for field in plan.fields]
        if len(names) != len(plan.fields):
            raise InvalidInput("view has the wrong number of column names", sqlstate="42601")
        if len(set(names)) != len(names):
            raise InvalidInput("column is named twice", sqlstate="42701")
        columns = tuple(zip(names, (f.type for f in plan.fields), strict=True))
        wanted = _build_view_definition(new, columns, compiled)
        return DefinedView(wanted, compiled, find_view_required_indexes(catalog, compiled))

    def compile_new_view_plan(self, catalog: Catalog, new: NewView) -> MaintenancePlan:
        """How the view would be kept."""
        return self._compile_bound_plan(catalog, new, self._bind_new_view(catalog, new))

    def _compile_bound_plan(self, catalog: Catalog, new: NewView, plan: n.Node) -> MaintenancePlan:
        form = form_of(new.options, new.index)
        return compile_view(plan, form, catalog, on_view=bool(new.reads))

    def _bind_new_view(self, catalog: Catalog, new: NewView) -> n.Node:
        if new.bound is not None and new.bound.catalog_version == catalog.version:
            return new.bound.plan
        return self._bind(catalog, new.definition)

    def cache_compiled_definition(
        self,
        catalog: Catalog,
        id_: int,
        compiled: MaintenancePlan,
        auxiliary: Auxiliary | None = None,
    ) -> None:
        """Use the compiled definition of a view that was just put into this catalog, as long as
        everything it depends on stays the same."""
        view = catalog.get(id_)
        assert isinstance(view, View)
        self._definitions[id_] = _CompiledDefinition(
            list_definition_versions(catalog, view), compiled, auxiliary
        )

    def cache_definition_in_catalog(
        self, catalog: Catalog, id_: int, compiled: MaintenancePlan
    ) -> None:
        """Use the compiled definition of a view of this catalog alone, which is not stored."""
        view = catalog.get(id_)
        assert isinstance(view, View)
        catalog.derived_cache["view read", id_] = _CompiledDefinition(
            list_definition_versions(catalog, view), compiled, None
        )

    def require_view_meaning_unchanged(self, catalog: Catalog, plain_views: Sequence[int]) -> None:
        """Raise 2BP01 when a view has another meaning or layout under this catalog, in which
        `plain_views` were changed or dropped."""
        found = [
            (view, self._find_meaning_conflict(catalog, view, plain_views))
            for view in catalog.views
        ]
        lost = [(view, fault) for view, fault in found if fault is not None]
        lost = [one for one in lost if not one[0].part] or lost  # what a user has made
        if lost:
            raise InvalidInput(
                "cannot change this because a view or index depends on it",
                sqlstate="2BP01",
                detail=", ".join(f"{view.noun_and_name}: {fault.message}" for view, fault in lost),
                hint=f"drop {lost[0][0].noun_and_name} first",
                name=lost[0][0].name,
            ) from lost[0][1]

    def _find_meaning_conflict(
        self, catalog: Catalog, view: View, plain_views: Sequence[int]
    ) -> Error | None:
        """The reason why a view has another meaning or layout under this catalog."""
        try:
            self._get_compiled_definition(catalog, view)
            for id_ in plain_views:
                # A definition that does not name it can be bound without it.
                self._bind(
                    hide_later_columns(catalog.with_objects({id_: None}), view), view.definition
                )
        except (InvalidInput, Unsupported, Unavailable) as error:
            return error
        return None

    def list_shared_index_ids(self, catalog: Catalog, wanted: ViewDefinition) -> list[int]:
        """Indexes of the view's tables that were made for other views: it may use them too."""
        found = [id_ for other in catalog.views for id_ in other.supporting_objects]
        return [
            id_
            for id_ in found
            if isinstance(index := catalog.get(id_), model.Index) and index.table in wanted.inputs
        ]

    def build_view_participants(
        self, catalog: Catalog, relations: frozenset[int], log: ChangeLog
    ) -> tuple[Participant, ...]:
        """The immediate views over these relations; for a catalog change also the participant that
        moves views between states."""
        views = {
            view.id: view
            for relation in sorted(relations)
            if relation != CATALOG_RELATION
            for view in catalog.dependent_views(relation)
        }
        found: list[Participant] = [
            self._build_view_participant(catalog, view)
            for view in views.values()
            if view.maintenance is Maintenance.IMMEDIATE and view.state is ObjectState.READY
        ]
        if CATALOG_RELATION in relations:
            found.append(ViewTransitionParticipant(self, log))
        return tuple(found)

    def _build_view_participant(self, catalog: Catalog, view: View) -> Participant:
        maintainer = self.get_view_maintainer(catalog, view)
        if view.is_unique:
            return UniqueViewIndexParticipant(catalog, view, maintainer)
        kept = view.options.keep_changes is not None
        return ChangefeedParticipant(view.id, maintainer) if kept else maintainer

    # -- repairing ----------------------------------------------------------------------------

    def try_repair_view(
        self, commits: CommitProtocol, view: View, tables: Reader, stored: Reader
    ) -> int | None:
        """Add the difference between the view's state at `stored` and what `tables`, at the same
        position, give; returns the number of entries that differed. None: another repair or
        detachment has changed the epoch meanwhile, or a commit a view that is computed as a whole,
        so that the caller has to retry."""
        writer = DerivedRows(EmptyReader(tables.catalog))
        self.get_view_maintainer(tables.catalog, view).backfill_state(tables, writer)
        additions = list(compute_correcting_additions(stored, view, dict(writer.writes())))
        seen = read_maintenance_epoch(stored)
        recomputed = isinstance(self.get_maintenance_plan(tables.catalog, view).tree, FullRecompute)
        before = _read_view_position(stored, view)

        def build_repair_update(newest: Reader) -> StateUpdate | None:
            at = _read_view_position(newest, view)
            if read_maintenance_epoch(newest) != seen or (recomputed and at != before):
                return None  # a view that is computed as a whole is no sum with what came since
            step = ChangefeedStep((view,), at)
            return StateUpdate(additions, changefeed=step, others=[build_next_epoch_write(newest)])

        return (
            len(additions)
            if not additions or commit_state_update(commits, build_repair_update)
            else None
        )

    # -- reading ------------------------------------------------------------------------------

    def build_reading_plan(self, catalog: Catalog, view: View) -> n.Node:
        """The plan that produces the view's rows from its stored state."""
        return self.get_maintenance_plan(catalog, view).build_read_plan(view.id)

    def build_verification_plan(self, catalog: Catalog, view: View) -> n.Node:
        """The same, without relying on a row being stored once."""
        return self.get_maintenance_plan(catalog, view).build_verification_plan(view.id)

    def build_scan_reading_plan(self, catalog: Catalog, view: View, scan: n.Scan) -> n.Node:
        """The same for one scan; rows that the scan's condition excludes may be left out."""
        narrowed = self.get_maintenance_plan(catalog, view).build_narrowed_read_plan
        if narrowed is None or scan.filter is None:
            return self.build_reading_plan(catalog, view)
        slots = scan.slots
        condition = transform.map_columns(
            scan.filter, lambda column: replace(column, index=slots[column.index])
        )
        return narrowed(view.id, condition)


def _read_view_position(reader: Reader, view: View) -> int:
    at = read_applied_position(reader, view) if follows_log(view) else reader.position
    assert at is not None
    return at


def _build_view_definition(
    new: NewView, columns: tuple[tuple[str, SqlType], ...], compiled: MaintenancePlan
) -> ViewDefinition:
    return ViewDefinition(
        name=new.name,
        schema=new.schema,
        definition=new.definition,
        columns=columns,
        inputs=collect_relations(compiled.tree),
        reads=new.reads,
        stored=tuple((f"{i} {f.name}", f.type) for i, f in enumerate(compiled.stored)),
        key_columns=compiled.key_column_count,
        amounts=compiled.amounts,
        maintenance=new.maintenance,
        options=new.options,
        index=new.index,
        replaces=new.replaces,
    )


def _require_stored_layout(view: View, compiled: MaintenancePlan) -> None:
    """Raise Unavailable when the stored layout is not the one that the definition compiles to."""
    stored = tuple(column.type for column in view.stored)
    made = tuple(field.type for field in compiled.stored)
    inputs = set(collect_relations(compiled.tree))
    same = inputs <= set(view.inputs) if view.part else inputs == set(view.inputs)
    if stored != made or view.amounts != compiled.amounts or not same:
        raise Unavailable(
            "view is kept in another form than its definition asks for",
            sqlstate="55000",
            hint="drop the view and create it again",
            name=view.name,
        )
