"""The participants of commits that change some tables, and the changes that each of them is shown.

A transaction changes many rows in columns that no index and no foreign key reads. Participants that
name the columns they read (`TableParticipant`) are shown the other changes only, of their tables
only; so a commit costs what its changes touch, not participants times changes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.codec import keyspace
from belvedere.txn.contracts import (
    Participant,
    RowChange,
    SingleRowParticipant,
    SingleRowWrites,
    TableParticipant,
)

PREFIX = keyspace.ROW_PREFIX_BYTES
SELECTED_CHANGES_MAX = 1_000
"""More changes are shown to everybody: participants then work by columns."""

Prefixes = bytes | frozenset[bytes]
"""The relations a commit changes, by their key prefix; a single one bare."""

SameColumns = Callable[[bytes, bytes], bool]
ShownTo = tuple[Participant, tuple[bytes, ...] | None]
"""A participant with the prefixes of the tables it looks at; None: it is shown every change."""
ChangesByTable = dict[bytes, list[RowChange]]


class ParticipantPlan(NamedTuple):
    """Participants of a commit; those that derive rows and those that check it, with their tables;
    their single-row paths where each has one, and those of the ones that have one, by `id`."""

    participants: tuple[Participant, ...]
    deriving: tuple[ShownTo, ...]
    checking: tuple[ShownTo, ...]
    single_row_writes: tuple[SingleRowWrites, ...] | None
    same_columns: dict[bytes, SameColumns | None]
    """For each table that is looked at: whether two rows agree in all that is read of it."""
    single_row_paths: dict[int, SingleRowWrites]

    def select_changes(self, changes: Sequence[RowChange]) -> ChangesByTable | None:
        """The changes that touch what is read of their tables; None: everybody sees every one."""
        same_columns = self.same_columns
        if len(changes) > SELECTED_CHANGES_MAX:
            return None
        found: ChangesByTable = {}
        for change in changes:
            key, old, new, _ = change
            prefix = key[:PREFIX]
            if prefix in same_columns:
                same = same_columns[prefix]
                if same is None or old is None or new is None or not same(old, new):
                    if prefix in found:
                        found[prefix].append(change)
                    else:
                        found[prefix] = [change]
        return found


NO_PARTICIPANTS = ParticipantPlan((), (), (), None, {}, {})


def pair_with_changes(
    shown: tuple[ShownTo, ...], changes: Sequence[RowChange], selected: ChangesByTable | None
) -> list[tuple[Participant, Sequence[RowChange]]]:
    """Participants with the changes that each is shown; without those that are shown none."""
    if selected is None:
        return [(participant, changes) for participant, _ in shown]
    found: list[tuple[Participant, Sequence[RowChange]]] = []
    for participant, prefixes in shown:
        if prefixes is None:
            found.append((participant, changes))
            continue
        own: list[RowChange] = []
        for prefix in prefixes:
            if prefix in selected:
                own = [*own, *selected[prefix]] if own else selected[prefix]
        if own:
            found.append((participant, own))
    return found


def plan_participants(
    catalog: Catalog, prefixes: Prefixes, participants: Sequence[Participant]
) -> ParticipantPlan:
    if not participants:
        return NO_PARTICIPANTS
    paths = _find_single_row_paths(participants, prefixes) if isinstance(prefixes, bytes) else {}
    every = len(paths) == len(participants)
    shown: list[ShownTo] = []
    columns: dict[int, set[int] | None] = {}
    for participant in participants:
        read = (
            participant.list_read_columns() if isinstance(participant, TableParticipant) else None
        )
        for table, slots in (read or {}).items():
            known = columns.setdefault(table, set())
            columns[table] = None if known is None or slots is None else known | set(slots)
        tables = None if read is None else tuple(map(keyspace.row_prefix, read))
        shown.append((participant, tables))
    return ParticipantPlan(
        tuple(participants),
        tuple([one for one in shown if getattr(one[0], "derives", True)]),
        tuple([one for one in shown if one[0].checks]),
        tuple(paths.values()) if every else None,
        {keyspace.row_prefix(id_): _same_columns(catalog, id_, columns[id_]) for id_ in columns},
        paths,
    )


def _same_columns(catalog: Catalog, table: int, slots: set[int] | None) -> SameColumns | None:
    if slots is None or not isinstance(catalog.get(table), Table):
        return None
    if not slots:
        return _have_nothing_to_compare
    return compiled_table(catalog, table).layout.equality_test(tuple(sorted(slots)))


def _have_nothing_to_compare(old: bytes, new: bytes) -> bool:
    """Of a table of which only new and deleted rows matter."""
    return True


def _find_single_row_paths(
    participants: Sequence[Participant], prefix: bytes
) -> dict[int, SingleRowWrites]:
    """The single-row paths of the participants that have one, in their order."""
    found = {}
    for participant in participants:
        if isinstance(participant, SingleRowParticipant):
            short = participant.single_row_writes(prefix)
            if short is not None:
                found[id(participant)] = short
    return found
