r"""Backslash commands of the shell: \d, \dt, \dv, \timing, \x, \i, \copy, \q and \?."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Index, PlainView, Sequence, Table, View
from belvedere.errors import InvalidInput
from belvedere.interfaces.shell.render import OutputFormat, render
from belvedere.plan.fields import Field
from belvedere.types import TEXT, Row
from belvedere.values.quoting import quote_literal

if TYPE_CHECKING:
    from belvedere.interfaces.shell.shell import Shell

HELP = r"""
  \d [NAME]      what exists, or the columns, keys and indexes of NAME
  \dt, \dv       tables; views
  \timing        show how long statements take, or stop it
  \x             one column per line, or back
  \i FILE        run the statements of a file
  \copy T|(QUERY) from|to 'FILE' [csv|parquet] [header] | (OPTIONS of COPY)
  \q             leave (also Ctrl-D)
"""


def run_command(shell: Shell, line: str) -> bool:
    """Run a backslash command; False when it failed."""
    name, _, rest = line.strip().partition(" ")
    handler = _HANDLERS.get(name)
    if handler is None:
        shell.print_error(f"no command {name}; \\? lists them")
        return False
    return handler(shell, rest.strip())


def _show_help(shell: Shell, rest: str) -> bool:
    shell.print_line(HELP.strip("\n"))
    return True


def _toggle_timing(shell: Shell, rest: str) -> bool:
    shell.timing = not shell.timing
    shell.print_line(f"timing is {'on' if shell.timing else 'off'}")
    return True


def _toggle_expanded(shell: Shell, rest: str) -> bool:
    shell.expanded = not shell.expanded
    shell.print_line(f"expanded display is {'on' if shell.expanded else 'off'}")
    return True


def _include_file(shell: Shell, rest: str) -> bool:
    return shell.run_file(Path(rest.strip("'\"")))


def _quit_shell(shell: Shell, rest: str) -> bool:
    raise EOFError


_COPY = re.compile(
    r"(?P<what>\(.*\)|[^()\s]+(?:\s*\([^()]*\))?)\s+(?P<way>from|to)\s+"
    r"(?P<path>'(?:[^']|'')*'|\S+)\s*(?P<options>.*?)\s*;?",
    re.IGNORECASE | re.DOTALL,
)


def _copy_file(shell: Shell, rest: str) -> bool:
    r"""`\copy t from 'file.csv' csv header`: COPY with the path seen from here. Options in
    parentheses or after WITH are those of COPY itself."""
    found = _COPY.fullmatch(rest)
    options = None if found is None else _copy_options(found["options"], found["path"].strip("'"))
    if found is None or options is None:
        shell.print_error(
            r"usage: \copy TABLE|(QUERY) from|to FILE [csv|parquet] [header] | (OPTIONS)"
        )
        return False
    path = found["path"]
    if path.startswith("'"):
        path = path[1:-1].replace("''", "'")
    place = quote_literal(str(Path(path).expanduser().resolve()))
    return shell.run_statement(f"COPY {found['what']} {found['way']} {place} {options}")


def _copy_options(written: str, path: str) -> str | None:
    """The options in the syntax of COPY; None if they cannot be parsed."""
    if written.startswith("(") or written.lower().startswith("with"):
        return written
    words = written.lower().split()
    if not set(words) <= {"csv", "parquet", "text", "header"}:
        return None
    forms = [word for word in words if word != "header"]
    form = forms[0] if forms else ("parquet" if path.endswith(".parquet") else "csv")
    header = ", header true" if "header" in words and form == "csv" else ""
    return f"(format {form}{header})"


# -- descriptions ----------------------------------------------------------------------------------


def _describe_relation(shell: Shell, rest: str) -> bool:
    if not rest:
        return _list_relations(shell, (Table, View, PlainView, Sequence))
    name = rest.strip('";')
    schema, _, bare = name.rpartition(".")
    try:
        item = shell.session.catalog.find_relation(bare, schema or "public")
    except InvalidInput as error:
        shell.print_error(str(error))
        return False
    if not isinstance(item, Table | View | PlainView):
        shell.print_error(f"there is no relation {name}")
        return False
    shell.page_output(_render_relation(shell.session.catalog, item))
    return True


def _list_tables(shell: Shell, rest: str) -> bool:
    return _list_relations(shell, (Table,))


def _list_views(shell: Shell, rest: str) -> bool:
    return _list_relations(shell, (View, PlainView))


_KINDS = {Table: "table", View: "materialized view", PlainView: "view", Sequence: "sequence"}


def _list_relations(shell: Shell, kinds: tuple[type, ...]) -> bool:
    catalog = shell.session.catalog
    names = {schema.id: schema.name for schema in catalog.schemas}
    rows: list[Row] = sorted(
        (names[item.schema], item.name, _KINDS[type(item)])
        for item in catalog.objects.values()
        if isinstance(item, kinds)
        and isinstance(item, Table | View | PlainView | Sequence)
        and catalog.find_relation(item.name, names[item.schema]) is item
    )
    fields = (Field("schema", TEXT), Field("name", TEXT), Field("type", TEXT))
    shell.page_output(render(fields, rows, shell.format))
    return True


def _render_relation(catalog: Catalog, item: Table | View | PlainView) -> str:
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
    lines = [f"{_KINDS[type(item)]} {item.name}", *_table_lines(fields, rows)]
    if isinstance(item, Table):
        lines += _constraint_lines(catalog, item)
    else:
        lines += ["definition:", f"  {item.definition}"]
    return "\n".join(lines)


def _table_lines(fields: tuple[Field, ...], rows: list[Row]) -> list[str]:
    from_render = render(fields, rows, OutputFormat.TABLE).splitlines()
    return from_render[:-1]  # without the row count


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


_HANDLERS: dict[str, Callable[[Shell, str], bool]] = {
    "\\?": _show_help,
    "\\timing": _toggle_timing,
    "\\x": _toggle_expanded,
    "\\i": _include_file,
    "\\copy": _copy_file,
    "\\q": _quit_shell,
    "\\d": _describe_relation,
    "\\dt": _list_tables,
    "\\dv": _list_views,
}
