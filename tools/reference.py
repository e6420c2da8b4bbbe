"""Writes docs/reference/: the lists of what the code has, made from the code.

    python -m tools.reference            write the pages
    python -m tools.reference --check    name the pages that are not as the code is

A test runs the check, so that the lists cannot fall behind.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

from belvedere.catalog import view_options
from belvedere.config import Config
from belvedere.plan.functions.core.function import Function, FunctionKind, Volatility, type_name
from belvedere.plan.functions.registry import FAMILIES, is_operator
from belvedere.session.context.settings import SETTINGS
from belvedere.session.copy import options as copy_options
from belvedere.session.system_tables.tables import TABLES
from belvedere.sql.parse.queries.types import SERIAL, SIMPLE_TYPES
from belvedere.types import Kind
from tools.reference_notes import COLUMN_NOTES, CONFIG_NOTES

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"
NOTE = "*This page is made from the code by `python -m tools.reference`.*"

TYPE_NOTES: dict[Kind, tuple[str, str]] = {
    Kind.BOOLEAN: ("bool", ""),
    Kind.SMALLINT: ("int", "2 bytes"),
    Kind.INTEGER: ("int", "4 bytes"),
    Kind.BIGINT: ("int", "8 bytes"),
    Kind.NUMERIC: ("decimal.Decimal", "numeric(precision, scale), or any number of digits"),
    Kind.REAL: ("float", "the shortest float that is the same REAL"),
    Kind.DOUBLE: ("float", ""),
    Kind.CHAR: ("str", "character(n), blank-padded"),
    Kind.VARCHAR: ("str", "character varying(n)"),
    Kind.TEXT: ("str", "Unicode without NUL, compared by code point (collation C)"),
    Kind.JSON: ("str", "the text as given; Python values with `con.json_values = True`"),
    Kind.BYTEA: ("bytes", ""),
    Kind.DATE: ("datetime.date", ""),
    Kind.TIME: ("datetime.time", "time(n), microseconds"),
    Kind.TIMESTAMP: ("datetime.datetime, naive", "timestamp(n), microseconds"),
    Kind.TIMESTAMPTZ: ("datetime.datetime, aware", "an instant, shown in the session's zone"),
    Kind.INTERVAL: ("datetime.timedelta", "months, days, microseconds; a month is 30 days then"),
    Kind.UUID: ("uuid.UUID", ""),
    Kind.ARRAY: ("list", "in expressions and parameters; no column has it"),
}
"""The Python value of each type, and what else a user wants to know of it."""

OTHER_NAMES: dict[Kind, tuple[str, ...]] = {
    Kind.NUMERIC: ("decimal", "dec"),
    Kind.DOUBLE: ("float", "float(25..53)"),
    Kind.REAL: ("float(1..24)",),
    Kind.CHAR: ("char", "nchar", "bpchar"),
    Kind.VARCHAR: ("varchar", "national character varying"),
    Kind.TIME: ("time",),
    Kind.TIMESTAMP: ("timestamp",),
    Kind.TIMESTAMPTZ: ("timestamptz",),
    Kind.ARRAY: ("type[]", "type ARRAY"),
}
"""Names that the parser takes apart itself, so that they stand in no table of the code."""

COPY_NOTES: dict[str, tuple[str, str]] = {
    "delimiter": ("text, csv", "one character between the columns: a tab, in csv a comma"),
    "encoding": ("text, csv", "UTF8 only"),
    "escape": ("csv", "the character before a quote inside of quotes: the quote itself"),
    "force_quote": ("csv, TO", "columns, or *, whose values are always quoted"),
    "header": ("text, csv", "a first line of names: written, skipped, or with `match` compared"),
    "null": ("text, csv", "how NULL is written: `\\N`, in csv nothing without quotes"),
    "on_error": ("text, csv, FROM", "`stop`"),
    "freeze": ("text, csv, FROM", "accepted, and changes nothing"),
    "quote": ("csv", 'the quote: `"`'),
}
"""The formats of each option of COPY, and what it is."""

TABLE_NOTES: dict[str, str] = {
    "belvedere.auxiliary_views": "views that exist only to maintain others, as in belvedere.views",
    "belvedere.housekeeping": "tasks by which the store tends itself, with their last failure",
    "belvedere.nodes": "processes that use a store of several (HBase), by their heartbeats",
    "belvedere.node_locks": "locks that these processes hold in the store",
    "belvedere.regions": "regions of an HBase database and their servers",
    "belvedere.locks": "locks that transactions hold or wait for",
    "belvedere.log": "the newest records of the change log",
    "belvedere.settings": "settings of this session",
    "belvedere.statements": "calls, errors, rows and time of statements, constants as `$n`",
    "belvedere.statistics": "what the optimizer knows of columns",
    "belvedere.tables": "tables, with estimates of their rows",
    "belvedere.views": "materialized views: position, lag, size, cost, errors",
}
"""What a table of the schema `belvedere` is for; those of information_schema are the standard's."""


def describe_types() -> Iterator[str]:
    yield from start_page("Types", "The types of columns and expressions.")
    yield from format_row("type", "other names", "in Python", "")
    yield from format_row("---", "---", "---", "---")
    for kind, (python, note) in TYPE_NOTES.items():
        named = [name for name, found in SIMPLE_TYPES.items() if found.kind is kind]
        others = [name for name in (*named, *OTHER_NAMES.get(kind, ())) if name != kind.value]
        yield from format_row(kind.value, ", ".join(others), python, note)
    serial = ", ".join(f"`{name}` ({found})" for name, found in SERIAL.items())
    yield from ("", f"In CREATE TABLE also, with a sequence of their own: {serial}.")
    yield from ("", "A NULL of any type is None.")


def describe_functions() -> Iterator[str]:
    yield from start_page(
        "Functions and operators",
        "Every overload, by family. The meaning of each is PostgreSQL's, and is compared with a "
        "real one by generated calls. Calls that the parser spells otherwise (`extract(year FROM "
        "t)`, `substring(s FROM 2)`, `x BETWEEN 1 AND 2`) are those of the functions below. A view "
        "takes stable and volatile functions only with `strict = false`.",
    )
    for family in FAMILIES:
        yield from (f"## {family_title(family)}", "")
        yield from format_row("name", "overloads", "")
        yield from format_row("---", "---", "---")
        for name, overloads in sorted(group_by_name(family).items()):
            calls = "<br>".join(dict.fromkeys(map(describe_overload, overloads)))
            yield from format_row(f"`{escape_cell(name)}`", calls, describe_traits(overloads[0]))
        yield ""


def family_title(family: ModuleType) -> str:
    first = (inspect.getdoc(family) or family.__name__).partition("\n")[0]
    return first.rstrip(".").partition(":")[0]


def group_by_name(family: ModuleType) -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for function in family.FUNCTIONS:
        found.setdefault(function.name, []).append(function)
    return found


def describe_overload(function: Function) -> str:
    types = [type_name(argument) for argument in function.arguments]
    if function.variadic:
        types[-1] = f"variadic {types[-1]}"
    if is_operator(function.name) and len(types) == 2:
        call = f"{types[0]} {function.name} {types[1]}"
    elif is_operator(function.name) and len(types) == 1:
        call = f"{function.name} {types[0]}"
    else:
        call = f"{function.name}({', '.join(types)})"
    return f"`{escape_cell(f'{call} → {type_name(function.result)}')}`"


def describe_traits(function: Function) -> str:
    traits = []
    if function.kind is not FunctionKind.SCALAR:
        traits.append("set-returning" if function.kind is FunctionKind.SET else function.kind.value)
    if function.volatility is not Volatility.IMMUTABLE:
        traits.append(function.volatility.value)
    return ", ".join(traits)


def describe_settings() -> Iterator[str]:
    yield from start_page(
        "Settings",
        "Of a session: `SET name = value`, `SHOW name`, `RESET name`. A setting of PostgreSQL that "
        "is not here is refused by name (0A000).",
    )
    yield from format_row("setting", "default", "")
    yield from format_row("---", "---", "---")
    for setting in sorted(SETTINGS.values(), key=lambda setting: setting.name):
        note = f"{setting.description} (fixed)" if setting.fixed else setting.description
        yield from format_row(f"`{setting.name}`", f"`{setting.default}`", escape_cell(note))
    yield from ("", "## Of an open store", "")
    yield "Given as `belvedere.connect(path, config=belvedere.Config(..))`; not stored."
    yield from ("", *format_row("field", "default", ""), *format_row("---", "---", "---"))
    for field in dataclasses.fields(Config):
        yield from format_row(f"`{field.name}`", f"`{field.default}`", CONFIG_NOTES[field.name])


def describe_copy_options() -> Iterator[str]:
    yield from start_page(
        "Options of COPY",
        "`COPY table (columns) FROM | TO 'file' | STDIN | STDOUT (option value, ..)`, as in "
        "PostgreSQL. FORMAT is text (the default), csv or parquet; parquet is for files and takes "
        "no other option. An option that is not honoured is refused.",
    )
    yield from format_row("option", "formats", "")
    yield from format_row("---", "---", "---")
    for name in sorted(copy_options.SUPPORTED):
        yield from format_row(name.upper(), *COPY_NOTES[name])
    refused = ", ".join(sorted(name.upper() for name in copy_options.REFUSED))
    yield from ("", f"Refused with 0A000: {refused}.")


def describe_system_tables() -> Iterator[str]:
    yield from start_page(
        "System tables", "Read-only, computed when they are read; see `information_schema.columns`."
    )
    for (schema, name), table in sorted(TABLES.items()):
        full_name = f"{schema}.{name}"
        yield from (f"## {full_name}", "")
        if schema == "belvedere":
            yield from (f"{TABLE_NOTES[full_name]}.", "")
        notes = COLUMN_NOTES[full_name] if schema == "belvedere" else None
        header = ("column", "type") if notes is None else ("column", "type", "")
        yield from format_row(*header)
        yield from format_row(*["---" for _ in header])
        for field in table.fields:
            note = () if notes is None else (escape_cell(notes[field.name]),)
            yield from format_row(field.name, str(field.type), *note)
        yield ""


def describe_view_options() -> Iterator[str]:
    yield from start_page(
        "View options",
        "`CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred', max_lag = '1 s') AS ..`; "
        "ALTER MATERIALIZED VIEW .. SET changes them.",
    )
    text = inspect.getdoc(view_options) or ""
    listed = text.partition("\n\n")[2].partition("\n\n")[0]
    yield from ("```text", *inspect.cleandoc(listed).splitlines(), "```")


def start_page(title: str, purpose: str) -> Iterator[str]:
    yield from (f"# {title}", "", NOTE, "", purpose, "")


def format_row(*cells: str) -> Iterator[str]:
    yield f"| {' | '.join(cells)} |"


def escape_cell(text: str) -> str:
    return text.replace("|", "\\|")


PAGES = {
    "types": describe_types,
    "functions": describe_functions,
    "settings": describe_settings,
    "system_tables": describe_system_tables,
    "view_options": describe_view_options,
    "copy_options": describe_copy_options,
}


def build_pages() -> dict[Path, str]:
    return {FOLDER / f"{name}.md": join_lines(lines()) for name, lines in PAGES.items()}


def join_lines(lines: Iterable[str]) -> str:
    return "\n".join(lines).rstrip("\n") + "\n"


def find_outdated_pages() -> list[str]:
    """The names of the pages whose text is not what the code gives."""
    return [
        path.name
        for path, text in build_pages().items()
        if not path.exists() or path.read_text() != text
    ]


def main() -> int:
    if "--check" in sys.argv[1:]:
        outdated = find_outdated_pages()
        print("\n".join(f"outdated: {name}" for name in outdated))
        return bool(outdated)
    FOLDER.mkdir(exist_ok=True)
    for path, text in build_pages().items():
        path.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
