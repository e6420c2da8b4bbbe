"""Name resolution: the scopes of a query, and the relations whose columns they name.

A `FromRelation` is the bound FROM clause so far: a node and the names for the columns of its row. A
`NameScope` is a relation plus the scopes around it. A name found `k` scopes further out becomes an
outer reference of depth k; see `plan.transform` for how depths count.

The left side of a lateral join is a scope too (`lateral_only`): sub-queries to its right stand one
level deeper whether they may see it (LATERAL, functions) or not.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from belvedere.catalog.model import Table, View
from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.plan.fields import Fields
from belvedere.plan.nodes import EMPTY_ROW, Node
from belvedere.plan.transform import columns_of, lift_expression, shift_all
from belvedere.sql.bind.required_rights import RelationUse
from belvedere.sql.parse import tree as t

if TYPE_CHECKING:
    from belvedere.sql.bind.binder import SelectCalls


class FromSource(NamedTuple):
    """One table of FROM: its columns are `start` and following of the row; a hidden one is ''."""

    alias: str
    schema: str | None  # only where the alias is the table's own name
    names: tuple[str, ...]
    start: int
    table: Table | View | None = None
    relation: tuple[str, str] | None = None  # schema and name of a table, whatever its alias
    use: RelationUse | None = None  # notes the columns that are named, where rights are needed


class VisibleColumn(NamedTuple):
    """A name that can be written without a qualifier; also an item of `*`."""

    name: str
    expression: e.Expression


@dataclass(frozen=True)
class FromRelation:
    node: Node
    sources: tuple[FromSource, ...] = ()
    visible: tuple[VisibleColumn, ...] = ()

    @cached_property
    def fields(self) -> Fields:
        return self.node.fields

    @cached_property
    def notes_columns(self) -> bool:
        return any(one.use is not None for one in self.sources)

    def note_columns(self, expression: e.Expression) -> None:
        """Note that the columns of an expression are read."""
        for index in columns_of(expression):
            for one in self.sources:
                if one.use is not None and 0 <= index - one.start < len(one.names):
                    one.use.mark_column(index - one.start)

    def with_use(self, use: RelationUse) -> FromRelation:
        """The relation of one source, whose columns are noted there."""
        (source,) = self.sources
        return FromRelation(self.node, (source._replace(use=use),), self.visible)

    def shift_names(self, offset: int) -> tuple[tuple[FromSource, ...], tuple[VisibleColumn, ...]]:
        """The names when `offset` columns come in front."""
        if not offset:
            return self.sources, self.visible
        sources = tuple(one._replace(start=one.start + offset) for one in self.sources)
        moved = shift_all([one.expression for one in self.visible], offset)
        names = [one.name for one in self.visible]
        return sources, tuple(map(VisibleColumn, names, moved))


EMPTY_RELATION = FromRelation(EMPTY_ROW)


SYSTEM_COLUMNS = frozenset({"tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"})


class CteName(NamedTuple):
    """`refused` is the error of reading it where it stands."""

    number: int
    name: str
    fields: Fields
    refused: InvalidInput | Unsupported | None = None


@dataclass(slots=True)
class NameScope:
    """`used`: a name of a nested scope was resolved here."""

    relation: FromRelation
    parent: NameScope | None
    ctes: Mapping[str, CteName]
    lateral_only: bool = False
    sees_lateral: bool = False
    used: bool = False
    places: dict[int, int] = field(default_factory=dict)  # where each column was first written
    found: SelectCalls | None = None  # of its SELECT, while that may have aggregates

    def resolve_column(self, name: t.Name) -> e.Expression:
        """The column of that name; 42703 or 42P01 if there is none, 42702 if there are several."""
        depth = 0
        scope: NameScope | None = self
        sees = True
        while scope is not None:
            if sees or not scope.lateral_only:
                found = scope._find_column(name)
                if found is not None:
                    scope._record_use(found, name.at, depth)
                    return lift_expression(found, depth) if depth else found
            if not scope.lateral_only:
                sees = scope.sees_lateral
            scope = scope.parent
            depth += 1
        raise self._unknown_name_error(name)

    def _record_use(self, found: e.Expression, at: int, depth: int) -> None:
        if depth:
            self.used = True
        if isinstance(found, e.Column):
            self.places.setdefault(found.index, at)
        if self.relation.notes_columns:
            self.relation.note_columns(found)

    def _find_column(self, name: t.Name) -> e.Expression | None:
        if len(name.parts) == 1:
            wanted = name.parts[0]
            found = [one.expression for one in self.relation.visible if one.name == wanted]
        else:
            source = self.find_source(name.parts[:-1])
            if source is None:
                return None
            found = self._find_in_source(source, name)
        if len(found) > 1:
            raise _name_error(
                name, "column reference is ambiguous", "42702", column=".".join(name.parts)
            )
        return found[0] if found else None

    def _find_in_source(self, source: FromSource, name: t.Name) -> list[e.Expression]:
        wanted = name.parts[-1]
        fields = self.relation.fields
        found: list[e.Expression] = [
            e.Column(source.start + i, fields[source.start + i].type, wanted)
            for i, one in enumerate(source.names)
            if one == wanted
        ]
        if not found and wanted in SYSTEM_COLUMNS:
            raise Unsupported("system column", position=name.at + 1, name=wanted)
        if not found:
            raise _name_error(
                name,
                "column does not exist",
                "42703",
                hint=suggest_names(wanted, source.names),
                column=".".join(name.parts),
            )
        return found

    def find_source(self, qualifier: tuple[str, ...]) -> FromSource | None:
        """The table of that alias, or of that schema and name."""
        if len(qualifier) == 1:
            for one in self.relation.sources:
                if one.alias == qualifier[0]:
                    return one
        elif len(qualifier) == 2:
            for one in self.relation.sources:
                if (one.schema, one.alias) == qualifier:
                    return one
        return None

    def _unknown_name_error(self, name: t.Name) -> InvalidInput | Unsupported:
        scope: NameScope | None = self
        names: list[str] = []
        aliases: list[str] = []
        while scope is not None:
            names += [one.name for one in scope.relation.visible]
            aliases += [one.alias for one in scope.relation.sources]
            scope = scope.parent
        if len(name.parts) > 1 and name.parts[-2] in aliases:
            return _name_error(
                name,
                "invalid reference to from-clause entry",
                "42P01",
                hint="to read that table here, put lateral before the sub-query",
                table=".".join(name.parts[:-1]),
            )
        if len(name.parts) > 1:
            return _name_error(
                name,
                "missing from-clause entry for table",
                "42P01",
                hint=suggest_names(name.parts[-2], aliases),
                table=".".join(name.parts[:-1]),
            )
        if name.parts[0] in SYSTEM_COLUMNS:
            return Unsupported("system column", position=name.at + 1, name=name.parts[0])
        if name.parts[0] in aliases:
            return Unsupported("whole-row reference", position=name.at + 1, name=name.parts[0])
        hint = suggest_names(name.parts[0], names)
        return _name_error(name, "column does not exist", "42703", hint=hint, column=name.parts[0])


def suggest_names(name: str, names: Iterable[str]) -> str | None:
    """A hint with the names most similar to this one."""
    found = difflib.get_close_matches(name, sorted(set(names) - {""}), n=3)
    return f"did you mean {', '.join(found)}?" if found else None


def _name_error(
    name: t.Name, message: str, sqlstate: str, hint: str | None = None, **facts: str
) -> InvalidInput:
    return InvalidInput(message, sqlstate=sqlstate, position=name.at + 1, hint=hint, **facts)


def make_source_relation(
    node: Node,
    alias: str,
    names: tuple[str, ...],
    schema: str | None = None,
    table: Table | View | None = None,
    named: tuple[str, str] | None = None,
) -> FromRelation:
    """A relation of one source; columns named '' are hidden."""
    fields = node.fields
    visible = tuple(
        [VisibleColumn(n, e.Column(i, fields[i].type, n)) for i, n in enumerate(names) if n]
    )
    return FromRelation(node, (FromSource(alias, schema, names, 0, table, named),), visible)


def rename_relation(relation: FromRelation, alias: str, columns: tuple[str, ...]) -> FromRelation:
    """The relation under one alias, its columns renamed from the left."""
    known = tuple(field.name for field in relation.node.fields)
    return make_source_relation(relation.node, alias, rename_columns(known, columns, alias))


def rename_columns(names: tuple[str, ...], columns: tuple[str, ...], alias: str) -> tuple[str, ...]:
    """The names with the first visible ones replaced."""
    if not columns:
        return names
    fresh = iter(columns)
    found = tuple([name and next(fresh, name) for name in names])
    if next(fresh, None) is not None:
        message = "table has fewer columns than the alias names"
        raise InvalidInput(message, sqlstate="42P10", alias=alias)
    return found
