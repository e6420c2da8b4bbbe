"""Name resolution: the scopes of a query, and the relations whose columns they name.

A `Relation` is the bound FROM clause so far: a node and the names for the columns of its row. A
`Scope` is a relation plus the scopes around it. A name found `k` scopes further out becomes an
outer reference of depth k; see `plan.transform` for how depths count.

The left side of a lateral join is a scope too (`lateral_only`): sub-queries to its right stand one
level deeper whether they may see it (LATERAL, functions) or not.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from belvedere.catalog.model import Table, View
from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.plan.fields import Fields
from belvedere.plan.nodes import EMPTY_ROW, Node
from belvedere.plan.transform import lift, shift
from belvedere.sql.parse import tree as t

if TYPE_CHECKING:
    from belvedere.sql.bind.binder import Found


class Source(NamedTuple):
    """One table of FROM: its columns are `start` and following of the row; a hidden one is ''."""

    alias: str
    schema: str | None  # only where the alias is the table's own name
    names: tuple[str, ...]
    start: int
    table: Table | View | None = None


class Visible(NamedTuple):
    """A name that can be written without a qualifier; also an item of `*`."""

    name: str
    expression: e.Expression


@dataclass(frozen=True, slots=True)
class Relation:
    node: Node
    sources: tuple[Source, ...] = ()
    visible: tuple[Visible, ...] = ()

    def shifted(self, offset: int) -> tuple[tuple[Source, ...], tuple[Visible, ...]]:
        """The names when `offset` columns come in front."""
        sources = tuple(one._replace(start=one.start + offset) for one in self.sources)
        visible = tuple(Visible(n, shift(x, offset)) for n, x in self.visible)
        return sources, visible


NOTHING = Relation(EMPTY_ROW)


SYSTEM_COLUMNS = frozenset({"tableoid", "ctid", "xmin", "xmax", "cmin", "cmax"})


class CteName(NamedTuple):
    """`refused` is the error of reading it where it stands."""

    number: int
    name: str
    fields: Fields
    refused: InvalidInput | Unsupported | None = None


@dataclass(slots=True)
class Scope:
    """`used`: a name of a nested scope was resolved here."""

    relation: Relation
    parent: Scope | None
    ctes: Mapping[str, CteName]
    lateral_only: bool = False
    sees_lateral: bool = False
    used: bool = False
    places: dict[int, int] = field(default_factory=dict)  # where each column was first written
    found: Found | None = None  # of its SELECT, while that may have aggregates

    def column(self, name: t.Name) -> e.Expression:
        """The column of that name; 42703 or 42P01 if there is none, 42702 if there are several."""
        depth = 0
        scope: Scope | None = self
        sees = True
        while scope is not None:
            if sees or not scope.lateral_only:
                found = scope._find(name)
                if found is not None:
                    scope._note(found, name.at, depth)
                    return lift(found, depth)
            if not scope.lateral_only:
                sees = scope.sees_lateral
            scope = scope.parent
            depth += 1
        raise self._unknown(name)

    def _note(self, found: e.Expression, at: int, depth: int) -> None:
        if depth:
            self.used = True
        if isinstance(found, e.Column):
            self.places.setdefault(found.index, at)

    def _find(self, name: t.Name) -> e.Expression | None:
        if len(name.parts) == 1:
            wanted = name.parts[0]
            found = [one.expression for one in self.relation.visible if one.name == wanted]
        else:
            source = self.source(name.parts[:-1])
            if source is None:
                return None
            found = self._in_source(source, name)
        if len(found) > 1:
            raise _at(name, "column reference is ambiguous", "42702", column=".".join(name.parts))
        return found[0] if found else None

    def _in_source(self, source: Source, name: t.Name) -> list[e.Expression]:
        wanted = name.parts[-1]
        fields = self.relation.node.fields
        found: list[e.Expression] = [
            e.Column(source.start + i, fields[source.start + i].type, wanted)
            for i, one in enumerate(source.names)
            if one == wanted
        ]
        if not found and wanted in SYSTEM_COLUMNS:
            raise Unsupported("system column", position=name.at + 1, name=wanted)
        if not found:
            raise _at(
                name,
                "column does not exist",
                "42703",
                hint=near(wanted, source.names),
                column=".".join(name.parts),
            )
        return found

    def source(self, qualifier: tuple[str, ...]) -> Source | None:
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

    def _unknown(self, name: t.Name) -> InvalidInput | Unsupported:
        scope: Scope | None = self
        names: list[str] = []
        aliases: list[str] = []
        while scope is not None:
            names += [one.name for one in scope.relation.visible]
            aliases += [one.alias for one in scope.relation.sources]
            scope = scope.parent
        if len(name.parts) > 1 and name.parts[-2] in aliases:
            return _at(
                name,
                "invalid reference to from-clause entry",
                "42P01",
                hint="to read that table here, put lateral before the sub-query",
                table=".".join(name.parts[:-1]),
            )
        if len(name.parts) > 1:
            return _at(
                name,
                "missing from-clause entry for table",
                "42P01",
                hint=near(name.parts[-2], aliases),
                table=".".join(name.parts[:-1]),
            )
        if name.parts[0] in SYSTEM_COLUMNS:
            return Unsupported("system column", position=name.at + 1, name=name.parts[0])
        if name.parts[0] in aliases:
            return Unsupported("whole-row reference", position=name.at + 1, name=name.parts[0])
        hint = near(name.parts[0], names)
        return _at(name, "column does not exist", "42703", hint=hint, column=name.parts[0])


def near(name: str, names: Iterable[str]) -> str | None:
    """A hint with the names most similar to this one."""
    found = difflib.get_close_matches(name, sorted(set(names) - {""}), n=3)
    return f"did you mean {', '.join(found)}?" if found else None


def _at(
    name: t.Name, message: str, sqlstate: str, hint: str | None = None, **facts: str
) -> InvalidInput:
    return InvalidInput(message, sqlstate=sqlstate, position=name.at + 1, hint=hint, **facts)


def source_relation(
    node: Node,
    alias: str,
    names: tuple[str, ...],
    schema: str | None = None,
    table: Table | View | None = None,
) -> Relation:
    """A relation of one source; columns named '' are hidden."""
    fields = node.fields
    visible = tuple([Visible(n, e.Column(i, fields[i].type, n)) for i, n in enumerate(names) if n])
    return Relation(node, (Source(alias, schema, names, 0, table),), visible)


def renamed(relation: Relation, alias: str, columns: tuple[str, ...]) -> Relation:
    """The relation under one alias, its columns renamed from the left."""
    known = tuple(field.name for field in relation.node.fields)
    return source_relation(relation.node, alias, renamed_columns(known, columns, alias))


def renamed_columns(
    names: tuple[str, ...], columns: tuple[str, ...], alias: str
) -> tuple[str, ...]:
    """The names with the first visible ones replaced."""
    if not columns:
        return names
    fresh = iter(columns)
    found = tuple([name and next(fresh, name) for name in names])
    if next(fresh, None) is not None:
        message = "table has fewer columns than the alias names"
        raise InvalidInput(message, sqlstate="42P10", alias=alias)
    return found
