r"""Descriptions of what exists: \d, \dt, \dv, \dm, \di, \ds, \det, with + more of each.

They read the catalog of the session, and what is measured (\d+) from the system tables.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable
from typing import TYPE_CHECKING

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.describe import qualified_name
from belvedere.catalog.model import (
    ForeignServer,
    ForeignTable,
    Index,
    Maintenance,
    PlainView,
    Sequence,
    Table,
    View,
)
from belvedere.catalog.view_options import SCHEDULE_NAMES
from belvedere.errors import InvalidInput
from belvedere.interfaces.shell.render import OutputFormat, render
from belvedere.plan.fields import Field
from belvedere.types import TEXT, Row

if TYPE_CHECKING:
    from belvedere.interfaces.shell.shell import Shell

_KINDS = {
    Table: "table",
    View: "materialized view",
    PlainView: "view",
    Sequence: "sequence",
    Index: "index",
    ForeignTable: "foreign table",
}
Described = Table | View | PlainView | ForeignTable | Sequence | Index
"""What has a name in a schema."""

_LISTED: dict[str, tuple[type, ...]] = {
    "\\d": (Table, View, PlainView, ForeignTable, Sequence),
    "\\dt": (Table,),
    "\\dv": (PlainView,),
    "\\dm": (View,),
    "\\di": (Index, View),
    "\\ds": (Sequence,),
    "\\det": (ForeignTable,),
}
"""What each command lists; an index of a view, or a deferred one, is stored as a view."""


def describe(shell: Shell, name: str, rest: str) -> bool:
    """Run one of the commands; False when there is nothing of that name."""
    more = name.endswith("+")
    name = name.rstrip("+")
    pattern = rest.rstrip("; ")
    if name == "\\d" and pattern and not any(sign in pattern for sign in "*?"):
        return _describe_relation(shell, pattern, more)
    _list_relations(shell, name, pattern, more)
    return True


def _list_relations(shell: Shell, name: str, pattern: str, more: bool) -> None:
    catalog = shell.session.catalog
    names = {schema.id: schema.name for schema in catalog.schemas}
    rows: list[Row] = sorted(
        (names[item.schema], item.name, _describe_kind(item), *_list_details(catalog, item, more))
        for item in catalog.objects.values()
        if isinstance(item, _LISTED[name])
        and isinstance(item, Described)
        and catalog.find_relation(item.name, names[item.schema]) is item
        and _is_listed(item, name)
        and _matches(pattern, names[item.schema], item.name)
    )
    heads = ["schema", "name", "type", "of", *(["details"] if more else [])]
    fields = tuple(Field(head, TEXT) for head in heads)
    shell.page_output(render(fields, rows, shell.format, expanded=shell.expanded, null=""))


def _is_listed(item: Described, name: str) -> bool:
    """Whether users see it, and under this command: an index stored as a view is an index."""
    if isinstance(item, Index):
        return not item.hidden
    if isinstance(item, View):
        return not item.part and (item.index is not None) == (name == "\\di")
    return True


def _matches(pattern: str, schema: str, name: str) -> bool:
    wanted_schema, _, wanted = pattern.rpartition(".")
    return fnmatch.fnmatchcase(name, wanted or "*") and (
        not wanted_schema or fnmatch.fnmatchcase(schema, wanted_schema)
    )


def _describe_kind(item: Described) -> str:
    return "index" if isinstance(item, View) and item.index is not None else _KINDS[type(item)]


def _list_details(catalog: Catalog, item: object, more: bool) -> list[str]:
    """What it belongs to or reads, and with `more` how it is kept."""
    of, details = "", ""
    match item:
        case Index():
            table = catalog.table(item.table)
            of, details = table.name, _index_line(table, item)
        case View():
            of = ", ".join(_input_names(catalog, item))
            details = _describe_maintenance(item)
        case ForeignTable():
            of = catalog.objects[item.server].name
        case Table():
            readers = [view for view in catalog.views if item.id in view.inputs]
            names = sorted(view.name for view in readers if _is_listed(view, "\\dm"))
            details = f"views: {', '.join(names)}" if names else ""
        case _:
            pass
    return [of, details] if more else [of]


def _input_names(catalog: Catalog, view: View) -> list[str]:
    below = view.reads if view.index is not None and view.reads else (*view.inputs, *view.reads)
    found = [catalog.get(id_) for id_ in below]
    return sorted({item.name for item in found if isinstance(item, Table | View)})


# -- one relation ----------------------------------------------------------------------------------


def _describe_relation(shell: Shell, written: str, more: bool) -> bool:
    schema, _, bare = written.replace('"', "").rpartition(".")
    catalog = shell.session.catalog
    try:
        item = catalog.find_relation(bare, schema or "public")
    except InvalidInput as error:
        shell.print_error(str(error))
        return False
    if not isinstance(item, Described):
        shell.print_error(f"there is no relation {written}")
        return False
    lines = _describe_lines(catalog, item)
    if more and isinstance(item, Table | View):
        lines += _measured_lines(shell, item, qualified_name(catalog, item))
    shell.page_output("\n".join(lines))
    return True


def _describe_lines(catalog: Catalog, item: Described) -> list[str]:
    head = f"{_describe_kind(item)} {item.name}"
    match item:
        case Index():
            table = catalog.table(item.table)
            return [head, f"  {_index_line(table, item)} on {table.name}"]
        case Sequence():
            return [head]
        case Table():
            return [head, *_column_lines(item), *_constraint_lines(catalog, item)]
        case View():
            return [
                head,
                *_column_lines(item),
                f"maintenance: {_describe_maintenance(item)}",
                *_view_index_lines(catalog, item),
                "definition:",
                f"  {item.definition}",
            ]
        case PlainView():
            return [head, *_column_lines(item), "definition:", f"  {item.definition}"]
        case ForeignTable():
            return [head, *_column_lines(item), *_foreign_lines(catalog, item)]


def _foreign_lines(catalog: Catalog, table: ForeignTable) -> list[str]:
    server = catalog.get(table.server)
    assert isinstance(server, ForeignServer)
    shown = [(column.name, options) for column, options in zip(table.columns, table.column_options)]
    return [
        f"server: {server.name}",
        f"options: {_list_options(table.options)}",
        *(f"  {name}: {_list_options(options)}" for name, options in shown if options),
    ]


def _list_options(options: dict[str, str]) -> str:
    return ", ".join(f"{name} '{value}'" for name, value in options.items())


def _column_lines(item: Table | View | PlainView | ForeignTable) -> list[str]:
    fields = tuple(Field(n, TEXT) for n in ("column", "type", "nullable", "default"))
    rows: list[Row] = []
    for column in item.columns:
        if column.dropped or column.hidden:
            continue
        default = column.default
        if column.identity:
            default = f"generated {column.identity} as identity"
        elif column.generated:
            default = f"generated always as ({column.generated}) stored"
        nullable = "not null" if column.not_null else ""
        rows.append((column.name, str(column.type), nullable, default))
    return render(fields, rows, OutputFormat.TABLE).splitlines()[:-1]  # without the row count


def _describe_maintenance(view: View) -> str:
    given = view.options.select_texts(SCHEDULE_NAMES)
    parts = [view.maintenance.value, *(f"{name} {text}" for name, text in given.items())]
    if view.maintenance is Maintenance.DEFERRED:
        parts.append(f"group {view.group}")
    return ", ".join([*parts, view.state.value])


def _view_index_lines(catalog: Catalog, view: View) -> list[str]:
    lines = []
    for one in catalog.views:
        if one.index is not None and view.id in one.reads and not one.part:
            names = [view.columns[slot].name for slot in one.index.slots[: one.index.key_count]]
            kind = "unique index" if one.is_unique else "index"
            lines.append(f"  {kind} {one.name} ({', '.join(names)})")
    return ["indexes:", *lines] if lines else []


def _constraint_lines(catalog: Catalog, table: Table) -> list[str]:
    def column_names(slots: tuple[int, ...]) -> str:
        return ", ".join(table.columns[slot].name for slot in slots)

    lines = []
    if not any(table.columns[slot].hidden for slot in table.primary_key):
        lines.append(f"  primary key ({column_names(table.primary_key)})")
    for index in catalog.table_indexes(table.id):
        if not index.hidden:
            lines.append(f"  {_index_line(table, index)}")
    for check in table.checks:
        lines.append(f"  check {check.name}: {check.expression}")
    for key in table.foreign_keys:
        parent = catalog.table(key.parent)
        referenced = ", ".join(parent.columns[slot].name for slot in key.parent_columns)
        columns = column_names(key.columns)
        lines.append(f"  foreign key {key.name} ({columns}) -> {parent.name} ({referenced})")
    return ["indexes and constraints:", *lines] if lines else []


def _index_line(table: Table, index: Index) -> str:
    parts = [
        table.columns[part.slot].name if part.slot is not None else f"({part.expression})"
        for part in index.parts
    ]
    text = f"{'unique ' if index.unique else ''}index {index.name} ({', '.join(parts)})"
    if index.include:
        text += f" include ({', '.join(table.columns[slot].name for slot in index.include)})"
    return text + (f" where {index.where}" if index.where else "")


def _measured_lines(shell: Shell, item: Table | View, name: str) -> list[str]:
    """What the system tables say of a table or view."""
    schema, _, bare = name.rpartition(".")
    kind = "views" if isinstance(item, View) else "tables"
    cursor = shell.connection.execute(
        f"SELECT * FROM belvedere.{kind} WHERE name = ? AND schema = ?", (bare, schema or "public")
    )
    names = [column[0] for column in cursor.description or ()]
    shown = [
        f"  {head}: {value}"
        for row in cursor.fetchall()
        for head, value in zip(names, row)
        if value is not None and head not in ("schema", "name", "definition", "state")
    ]
    return [f"belvedere.{kind}:", *shown] if shown else []


DESCRIBERS: tuple[str, ...] = (*_LISTED, *(f"{name}+" for name in _LISTED))
Describer = Callable[["Shell", str, str], bool]
