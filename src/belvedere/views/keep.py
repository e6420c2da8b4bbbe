"""The views of a database: who maintains them, how they come into being, how they are read.

Creating a view: (1) a catalog entry in state BUILDING, which nobody reads or maintains; (2)
backfill at a snapshot, written with a watermark of that position; (3) catching up from the log; (4)
READY. A deferred view goes on from its watermark. An immediate one is flipped in one commit, whose
section applies what the log still has, so that no change falls between the last stretch and the
first transaction that maintains it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, cast

import msgspec

from belvedere import failpoints
from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.edit import Edit
from belvedere.catalog.model import CATALOG_RELATION, Maintenance, State, View
from belvedere.codec import keyspace
from belvedere.errors import InvalidInput, Unavailable, Unsupported
from belvedere.kv.batch import Write
from belvedere.plan import nodes as n
from belvedere.txn.border import (
    ChangeLog,
    CommitProtocol,
    LockRequest,
    ParticipantsFor,
    Reader,
    RowChange,
    Writer,
)
from belvedere.txn.commit.batch import DerivedRows
from belvedere.txn.history.readers import OverlayReader
from belvedere.txn.transaction import Transaction
from belvedere.views.compile import Compiled, compile_view
from belvedere.views.delta import Wish
from belvedere.views.group import (
    catch_up,
    consolidated,
    differences,
    put_watermark,
    state_before,
    watermark,
    watermark_write,
)
from belvedere.views.maintain import Maintainer
from belvedere.views.tree import inputs_of
from belvedere.views.wishes import wishes_of

Bind = Callable[[Catalog, str], n.Node]
"""The text of a query to its bound plan."""


def no_queries(catalog: Catalog, text: str) -> n.Node:
    """Stands in where nothing can bind SQL."""
    raise Unsupported("view without the SQL part", definition=text)


def pinned(catalog: Catalog, view: View) -> Catalog:
    """The catalog as the view's definition sees it: columns that came later are hidden."""
    changed: dict[int, model.AnyObject | None] = {}
    for id_, width in zip(view.inputs, view.widths):
        table = catalog.table(id_)
        if len(table.columns) > width:
            later = [msgspec.structs.replace(c, hidden=True) for c in table.columns[width:]]
            columns = (*table.columns[:width], *later)
            changed[id_] = msgspec.structs.replace(table, columns=columns)
    return catalog.replaced(changed) if changed else catalog


class _Ready(NamedTuple):
    """A view compiled, and what it was compiled against."""

    uses: object
    compiled: Compiled
    maintainer: Maintainer


def _uses(catalog: Catalog, view: View) -> object:
    """Versions of the view, its tables and their indexes."""
    tables = [
        (id_, catalog.objects[id_].version, [(i.id, i.version) for i in catalog.indexes_of(id_)])
        for id_ in view.inputs
    ]
    named = [(id_, catalog.get(id_)) for id_ in view.reads]
    return (view.definition, tables, named)


class Keeper:
    """Compiles views and drives their maintenance. `bind` turns a definition into a plan."""

    def __init__(self, bind: Bind, indexes: ParticipantsFor) -> None:
        """`indexes` are the participants that derive index entries."""
        self._bind = bind
        self.indexes = indexes
        self._known: dict[int, _Ready] = {}

    def compiled(self, catalog: Catalog, view: View) -> Compiled:
        return self._ready(catalog, view).compiled

    def maintainer(self, catalog: Catalog, view: View) -> Maintainer:
        return self._ready(catalog, view).maintainer

    def _ready(self, catalog: Catalog, view: View) -> _Ready:
        """The view compiled for this catalog; done again only when something it uses changed."""
        memo_key = ("view", view.id)
        found = catalog.memo.get(memo_key)
        if found is None:
            uses = _uses(catalog, view)
            found = self._known.get(view.id)
            if found is None or found.uses != uses:
                compiled = compile_view(self._bind(pinned(catalog, view), view.definition))
                _require_same_form(view, compiled)
                maintainer = Maintainer(catalog, view, compiled, self.indexes)
                found = self._known[view.id] = _Ready(uses, compiled, maintainer)
            catalog.memo[memo_key] = found
        return cast(_Ready, found)

    def define(
        self,
        catalog: Catalog,
        name: str,
        schema: str,
        text: str,
        maintenance: Maintenance = Maintenance.IMMEDIATE,
        options: dict[str, str] | None = None,
        columns: Sequence[str] = (),
        reads: Sequence[int] = (),
    ) -> ViewDefinition:
        """The catalog definition of a view over this query; Unsupported when it cannot be kept."""
        plan = self._bind(catalog, text)
        compiled = compile_view(plan)
        names = list(columns) or [field.name for field in plan.fields]
        if len(names) != len(plan.fields):
            raise InvalidInput("view has the wrong number of column names", sqlstate="42601")
        if len(set(names)) != len(names):
            raise InvalidInput("column is named twice", sqlstate="42701")
        return ViewDefinition(
            name=name,
            schema=schema,
            definition=text,
            columns=tuple(zip(names, (f.type for f in plan.fields), strict=True)),
            inputs=inputs_of(compiled.tree),
            reads=tuple(reads),
            stored=tuple((f"{i} {f.name}", f.type) for i, f in enumerate(compiled.stored)),
            key_columns=compiled.key_columns,
            amounts=compiled.amounts,
            maintenance=maintenance,
            options=options or {},
        )

    def require_kept(self, catalog: Catalog, plain_views: Sequence[int]) -> None:
        """Raise 2BP01 when a view is not the same under this catalog, in which `plain_views` have
        changed or gone."""
        for view in catalog.views:
            try:
                self._ready(catalog, view)
                for id_ in plain_views:
                    # A definition that does not name it can be bound without it.
                    self._bind(pinned(catalog.replaced({id_: None}), view), view.definition)
            except (InvalidInput, Unsupported, Unavailable) as error:
                raise InvalidInput(
                    "cannot change this because a view depends on it",
                    sqlstate="2BP01",
                    detail=f"view {view.name}: {error.message}",
                    hint="drop the view first",
                    view=view.name,
                ) from error

    def wishes(self, catalog: Catalog, wanted: ViewDefinition) -> tuple[Wish, ...]:
        """The indexes that would spare the view's maintenance a scan, the shortest for each
        table and set of columns."""
        return self.wishes_of(catalog, compile_view(self._bind(catalog, wanted.definition)))

    def wishes_of(self, catalog: Catalog, compiled: Compiled) -> tuple[Wish, ...]:
        found = wishes_of(catalog, compiled.tree)
        return tuple(
            dict.fromkeys(w if w.ordered else Wish(w.relation, w.slots[:1]) for w in found)
        )

    def shared_indexes(self, catalog: Catalog, wanted: ViewDefinition) -> list[int]:
        """Indexes of the view's tables that were made for other views: it may use them too."""
        found = [id_ for other in catalog.views for id_ in other.auxiliaries]
        return [
            id_
            for id_ in found
            if isinstance(index := catalog.get(id_), model.Index) and index.table in wanted.inputs
        ]

    def participants(
        self, catalog: Catalog, relations: frozenset[int], log: ChangeLog
    ) -> tuple[Maintainer | Flip, ...]:
        """The immediate views over these relations; of a catalog change, the views it flips."""
        views = {
            view.id: view for relation in sorted(relations) for view in catalog.views_over(relation)
        }
        found: list[Maintainer | Flip] = [
            self.maintainer(catalog, view)
            for view in views.values()
            if view.maintenance is Maintenance.IMMEDIATE and view.state is State.READY
        ]
        if CATALOG_RELATION in relations:
            found.append(Flip(self, log))
        return tuple(found)

    # -- filling and catching up --------------------------------------------------------------

    def backfill(self, commits: CommitProtocol, view: View, reader: Reader) -> None:
        """Write the state of a view as of `reader`, with its watermark."""
        maintainer = self.maintainer(reader.catalog, view)
        writer = DerivedRows(Nothing(reader.catalog))
        maintainer.fill(reader, writer)
        position = reader.position
        if failpoints.armed and failpoints.planted("view_snapshot_early"):
            position = commits.newest.position
        rows: list[Write] = [*writer.writes(), watermark_write(group_of(view), position)]
        commits.derive(lambda newest: rows)

    def repair(self, commits: CommitProtocol, view: View, tables: Reader, stored: Reader) -> int:
        """Add the difference between the view's state at `stored` and what `tables`, at the same
        position, give."""
        writer = DerivedRows(Nothing(tables.catalog))
        self.maintainer(tables.catalog, view).fill(tables, writer)
        additions = list(differences(stored, view, dict(writer.writes())))

        def make(newest: Reader) -> list[Write]:
            derived = DerivedRows(newest)
            for addition in additions:
                derived.add(*addition)
            return derived.writes()

        if additions:
            commits.derive(make)
        return len(additions)

    def catch_up(self, commits: CommitProtocol, log: ChangeLog, view: View) -> int:
        """Bring a view that has a watermark to what is published now, or beyond. Somebody else may
        be at the same work: whoever comes second to a stretch of the log goes on after it."""
        wanted = log.last
        while True:
            reached = catch_up(
                commits,
                log,
                group_of(view),
                frozenset(view.inputs),
                lambda catalog: (self.maintainer(catalog, view),),
                self.indexes,
            )
            if reached is None:
                return wanted  # it is dropped, or immediate by now
            if reached >= wanted:
                return reached

    # -- catching up on read ------------------------------------------------------------------

    def with_pending(
        self, log: ChangeLog, transaction: Transaction, views: Sequence[View]
    ) -> Reader:
        """The transaction, with these deferred views brought to its position and its own writes:
        the same maintenance, not written."""
        writer = DerivedRows(transaction)
        for view in views:
            changes = self._pending(log, transaction, view)
            if changes:
                before = state_before(transaction, changes, self.indexes)
                self.maintainer(transaction.catalog, view).writes(changes, before, writer)
        overlay = dict(writer.writes())
        return OverlayReader(transaction, overlay, transaction.position, transaction.catalog)

    def at_watermark(
        self, log: ChangeLog, transaction: Transaction, view: View
    ) -> tuple[Reader, int]:
        """The view's tables at the position the view has reached, and that position."""
        if view.maintenance is Maintenance.IMMEDIATE:
            return transaction, transaction.position
        mark = watermark(transaction, view.group)
        assert mark is not None
        records = log.read(mark, transaction.position)
        changes = consolidated(records, frozenset(view.inputs))
        return state_before(transaction, changes, self.indexes), mark

    def _pending(self, log: ChangeLog, transaction: Transaction, view: View) -> list[RowChange]:
        """What the view lacks: the log after its watermark, then the transaction's own changes."""
        mark = watermark(transaction, view.group)
        assert mark is not None
        relations = frozenset(view.inputs)
        logged = consolidated(log.read(mark, transaction.position), relations)
        merged = {change.key: change for change in logged}
        for change in transaction.changes:
            if change.relation in relations:
                known = merged.get(change.key)
                old = change.old if known is None else known.old
                merged[change.key] = RowChange(change.key, old, change.new)
        return [change for change in merged.values() if change.old != change.new]

    # -- reading ------------------------------------------------------------------------------

    def reading(self, catalog: Catalog, view: View) -> n.Node:
        """A plan for the view's rows, over its stored state."""
        return self.compiled(catalog, view).reading(view.id)


def _changed_plain_views(changes: Sequence[RowChange]) -> list[int]:
    old = [model.decode(c.old) for c in changes if c.relation == CATALOG_RELATION and c.old]
    return [item.id for item in old if isinstance(item, model.PlainView)]


def _require_same_form(view: View, compiled: Compiled) -> None:
    """The stored state must be what the definition is compiled to now."""
    stored = tuple(column.type for column in view.stored)
    made = tuple(field.type for field in compiled.stored)
    inputs = set(inputs_of(compiled.tree))
    if stored != made or view.amounts != compiled.amounts or inputs != set(view.inputs):
        raise Unavailable(
            "view is kept in another form than its definition asks for",
            sqlstate="55000",
            hint="drop the view and create it again",
            name=view.name,
        )


def switch(edit: Edit, view: View, maintenance: Maintenance, options: dict[str, str]) -> None:
    """Make a view immediate or deferred; the commit (`Flip`) brings its state along."""
    group = view.group
    if maintenance is not view.maintenance:
        group = 0 if maintenance is Maintenance.IMMEDIATE else edit.allocate()
    edit.put(msgspec.structs.replace(view, maintenance=maintenance, group=group, options=options))


class Flip:
    """Participant of catalog changes. A view that becomes immediate in this commit gets what the
    log has after its watermark; one that becomes deferred gets a watermark; one that is dropped
    loses it, so that it holds back the log no longer."""

    def __init__(self, keeper: Keeper, log: ChangeLog) -> None:
        self._keeper = keeper
        self._log = log

    def locks(self, changes: Sequence[RowChange], reader: Reader) -> Sequence[LockRequest]:
        return ()

    def check(self, changes: Sequence[RowChange], reader: Reader) -> None:
        """Refuse a catalog under which a view would no longer be what it is."""
        self._keeper.require_kept(reader.catalog, _changed_plain_views(changes))

    def writes(self, changes: Sequence[RowChange], reader: Reader, writer: Writer) -> None:
        for old, new in _changed_views(changes):
            if new is None or new.state is State.DROPPED:
                if old.state is not State.DROPPED:
                    writer.delete(keyspace.watermark_key(group_of(old)))
            elif _follows_log(old) and not _follows_log(new):
                self._apply_log(old, new, reader, writer)
            elif _follows_log(new) and not _follows_log(old):
                put_watermark(writer, new.group, reader.position + 1)

    def _apply_log(self, old: View, new: View, reader: Reader, writer: Writer) -> None:
        mark = watermark(reader, group_of(old))
        assert mark is not None, "what follows the log has a watermark"
        records = self._log.read_written(mark, reader.position)
        missed = consolidated(records, frozenset(new.inputs))
        if failpoints.armed and failpoints.planted("view_flip_without_log"):
            missed = []
        before = state_before(reader, missed, self._keeper.indexes)
        self._keeper.maintainer(reader.catalog, new).writes(missed, before, writer)
        writer.delete(keyspace.watermark_key(group_of(old)))


def _changed_views(changes: Sequence[RowChange]) -> Iterator[tuple[View, View | None]]:
    """Views before and after the catalog changes among these."""
    for change in changes:
        if change.relation == CATALOG_RELATION and change.old is not None:
            old = model.decode(change.old)
            new = None if change.new is None else model.decode(change.new)
            if isinstance(old, View):
                assert new is None or isinstance(new, View)
                yield old, new


def _follows_log(view: View) -> bool:
    """Whether its state is brought up to date by reading the log: being built, or deferred."""
    return view.state is State.BUILDING or view.maintenance is Maintenance.DEFERRED


def group_of(view: View) -> int:
    """The maintenance group a view's watermark is kept under; an immediate view has one of its own
    while it is being built."""
    return view.group or view.id


class Nothing:
    """A reader of an empty state: what a backfill adds to."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.position = 0

    def get(self, key: bytes) -> None:
        return None

    def multi_get(self, keys: Sequence[bytes]) -> list[bytes | None]:
        return [None] * len(keys)

    def scan(self, start: bytes, end: bytes, **_: object) -> Iterator[list[tuple[bytes, bytes]]]:
        return iter(())

    def scan_values(self, start: bytes, end: bytes, **_: object) -> Iterator[list[bytes]]:
        return iter(())
