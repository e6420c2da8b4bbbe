"""Constraints that must hold at the end of every statement, not only at commit.

A statement about a few rows of one table knows beforehand what it can break: an INSERT the keys of
its own table, a DELETE those of tables that refer to it, an UPDATE those with a column that it
assigns. What others change, a referential action for one, is found from the changes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.foreign_key_graph import child_foreign_keys
from belvedere.catalog.model import Index
from belvedere.catalog.relation_codecs import compiled_index, compiled_table
from belvedere.execution.row_writes import referring_keys
from belvedere.plan import nodes as n
from belvedere.session.context.database_contract import DatabaseContract
from belvedere.txn.contracts import RowChange
from belvedere.txn.transaction.foreign_keys import ForeignKeyParticipant
from belvedere.txn.transaction.transaction import Transaction

if TYPE_CHECKING:
    from belvedere.session.session import Session


class ImmediateChecks(NamedTuple):
    """What must hold at the end of a statement."""

    unique_starts: tuple[bytes, ...]
    """Where unique indexes begin: reading there makes the entries, and finds equal ones."""
    foreign_keys: tuple[ForeignKeyParticipant, ...]


NO_CHECKS = ImmediateChecks((), ())
"""The one that statements have which can break nothing."""


def check_constraints_of_changes(
    session: Session, transaction: Transaction, changes: tuple[RowChange, ...]
) -> None:
    """Check whatever these changes, of any tables, can break."""
    relations = frozenset([change.relation for change in changes])
    checks = _find_checks_of_tables(session, transaction.catalog, relations)
    run_immediate_checks(session, transaction, checks, changes)


def run_immediate_checks(
    session: Session,
    transaction: Transaction,
    checks: ImmediateChecks,
    changes: tuple[RowChange, ...],
) -> None:
    for start in checks.unique_starts:
        transaction.get(start)
    for foreign_key in checks.foreign_keys:
        deferred = foreign_key.initially_deferred
        if foreign_key.deferrable:
            deferred = session.transactions.is_constraint_deferred(foreign_key.name, deferred)
        if not deferred:
            foreign_key.check(changes, transaction)


def _find_checks_of_tables(
    session: Session, catalog: Catalog, relations: frozenset[int]
) -> ImmediateChecks:
    memo_key = ("immediate checks", relations)
    found = catalog.derived_cache.get(memo_key)
    if found is None:
        indexes = [index for relation in relations for index in catalog.table_indexes(relation)]
        participants = session.host.participants_for(catalog, relations)
        found = catalog.derived_cache[memo_key] = ImmediateChecks(
            _list_unique_index_starts(catalog, indexes),
            tuple([one for one in participants if isinstance(one, ForeignKeyParticipant)]),
        )
    return found  # type: ignore[return-value]


def _list_unique_index_starts(catalog: Catalog, indexes: list[Index]) -> tuple[bytes, ...]:
    return tuple([compiled_index(catalog, index.id).start for index in indexes if index.unique])


def find_statement_checks(
    host: DatabaseContract, catalog: Catalog, node: n.Node
) -> ImmediateChecks | None:
    """What a statement can break; None: that depends on its changes."""
    if not isinstance(node, n.Insert | n.Update | n.Delete):
        return None
    if isinstance(node, n.Insert):
        if node.on_conflict is not None:
            return None
    elif referring_keys(catalog, node.relation):
        return None  # actions change other tables
    table, touched = catalog.table(node.relation), _find_assigned_slots(catalog, node)
    indexes = [] if isinstance(node, n.Delete) else list(catalog.table_indexes(table.id))
    names = {
        (table.id, key.name)
        for key in table.foreign_keys
        if not isinstance(node, n.Delete) and _touches_any_slot(touched, key.columns)
    } | {
        (child.id, key.name)
        for child, key in child_foreign_keys(catalog, table.id)
        if not isinstance(node, n.Insert) and _touches_any_slot(touched, key.parent_columns)
    }
    participants = host.participants_for(catalog, frozenset([table.id]))
    keys = [one for one in participants if isinstance(one, ForeignKeyParticipant)]
    found = ImmediateChecks(
        _list_unique_index_starts(
            catalog, [one for one in indexes if _can_break_unique_index(touched, one)]
        ),
        tuple([one for one in keys if (one.child, one.name) in names]),
    )
    return NO_CHECKS if found == NO_CHECKS else found


def _find_assigned_slots(
    catalog: Catalog, node: n.Insert | n.Update | n.Delete
) -> frozenset[int] | None:
    """The columns that an update assigns; None: all of them."""
    if not isinstance(node, n.Update):
        return None
    columns = compiled_table(catalog, node.relation).live_columns
    ordinals = [one.ordinal for one in (*node.assignments, *node.rules.generated)]
    return frozenset([columns[ordinal].slot for ordinal in ordinals])


def _touches_any_slot(touched: frozenset[int] | None, slots: tuple[int, ...]) -> bool:
    return touched is None or not touched.isdisjoint(slots)


def _can_break_unique_index(touched: frozenset[int] | None, index: Index) -> bool:
    slots = [part.slot for part in index.parts if part.slot is not None]
    by_columns = index.where is None and len(slots) == len(index.parts)
    return not by_columns or _touches_any_slot(touched, tuple(slots))
