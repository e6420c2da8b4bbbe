"""What a statement needs rights on, noted while it is bound for a role that is not the owner.

    relations      each with a privilege and the columns that the statement names
    schemas        of the objects that it names
    sequences      of nextval and its relatives
    system tables  by schema and name

A plain view is used with the rights of the role that reads it; what is inside of it, with those of
the view's owner.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from belvedere.catalog.model import ForeignTable, PlainView, Table, View


@dataclass(slots=True)
class RelationUse:
    """`columns` are slots. Without any, `always` says that one column at least must be allowed.
    `role` None: the session's."""

    relation: int
    privilege: str
    slots: tuple[int, ...]  # of the columns of its row in the plan
    role: int | None = None
    always: bool = True
    columns: set[int] = field(default_factory=set)

    def mark_column(self, ordinal: int) -> None:
        if ordinal < len(self.slots):
            self.columns.add(self.slots[ordinal])


class SequenceUse(NamedTuple):
    sequence: int
    verb: str
    role: int | None


class SchemaUse(NamedTuple):
    schema: int
    role: int | None


class RequiredRights:
    """One per statement. `role` is whom the part that is being bound acts for."""

    def __init__(self) -> None:
        self.relations: list[RelationUse] = []
        self.schemas: set[SchemaUse] = set()
        self.sequences: set[SequenceUse] = set()
        self.system_tables: set[tuple[str, str]] = set()
        self.role: int | None = None

    def add_relation(
        self,
        item: Table | ForeignTable | View | PlainView,
        privilege: str,
        *,
        always: bool = True,
    ) -> RelationUse:
        slots = tuple(column.slot for column in item.columns if not column.dropped)
        use = RelationUse(item.id, privilege, slots, self.role, always)
        self.relations.append(use)
        self.schemas.add(SchemaUse(item.schema, self.role))
        return use

    def add_sequence(self, sequence: int, verb: str) -> None:
        self.sequences.add(SequenceUse(sequence, verb, self.role))
