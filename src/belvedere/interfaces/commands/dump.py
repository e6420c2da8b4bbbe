"""`belvedere dump PATH`: catalog and entries of a store as text, in key order; with `--sql`, as a
script (`dump_sql`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog, is_dropped
from belvedere.catalog.describe import qualified_name, relation_describer
from belvedere.catalog.model import (
    NAMELESS,
    AccessList,
    AnyObject,
    Comments,
    ForeignServer,
    ForeignTable,
    Index,
    PlainView,
    Role,
    Schema,
    Sequence,
    Table,
    View,
)
from belvedere.codec import keyspace
from belvedere.codec.printer import print_name, print_pair
from belvedere.interfaces.commands.dump_source import DumpSource, open_dump_source
from belvedere.interfaces.commands.dump_sql import dump_sql
from belvedere.kv.batch import Pair
from belvedere.kv.files import map_os_errors, replace_when_written


def dump_store(path: Path, limit: int | None = None, *, sql: bool = False) -> Iterator[str]:
    """The lines of the dump, or of a script that recreates the store; at most `limit` rows of each
    relation and of the log."""
    with open_dump_source(path) as db:
        yield from dump_sql(db, limit) if sql else dump_database(db, limit)


def write_dump(output: Path, lines: Iterable[str]) -> None:
    """Write the dump to a file that only its owner can read, and that is whole or not there."""
    with (
        map_os_errors(output),
        replace_when_written(output, 0o600) as draft,
        draft.open("w", encoding="utf-8", newline="") as file,
    ):
        file.writelines(f"{line}\n" for line in lines)


def dump_database(db: DumpSource, limit: int | None = None) -> Iterator[str]:
    catalog = db.catalog
    yield f"store at position {db.position}, incarnation {db.incarnation:x}"
    yield f"format {keyspace.STORE_FORMAT}, catalog version {catalog.version}"
    yield ""
    yield "# what exists"
    for item in sorted(catalog.objects.values(), key=lambda item: item.id):
        yield from _object_lines(catalog, item)
    start, end = keyspace.meta_range()
    yield from _section_lines(db, "meta", start, end, limit)
    start, end = keyspace.log_range(0, keyspace.POSITION_MAX)
    yield from _section_lines(db, "log, oldest first", start, end, limit)
    start, end = keyspace.watermark_range()
    yield from _section_lines(db, "watermarks", start, end, limit)
    for item in sorted(catalog.objects.values(), key=lambda item: item.id):
        if isinstance(item, Table | Index | View) and not is_dropped(item):
            start, end = keyspace.relation_range(item.id)
            yield from _section_lines(
                db, f"rows of {print_name(qualified_name(catalog, item))}", start, end, limit
            )
    start, end = keyspace.relation_range(model.SEQUENCE_RELATION)
    yield from _section_lines(db, "sequences", start, end, limit)


def _section_lines(
    db: DumpSource, title: str, start: bytes, end: bytes, limit: int | None
) -> Iterator[str]:
    describe = relation_describer(db.catalog)
    pairs: Iterator[Pair] = (pair for batch in db.store.scan(start, end) for pair in batch)
    lines = [print_pair(key, value, describe) for key, value in islice(pairs, limit)]
    left = sum(1 for _ in pairs)
    if lines:
        yield ""
        yield f"# {title}"
        yield from lines
        if left:
            yield f"... and {left} more"


def _object_lines(catalog: Catalog, item: AnyObject) -> Iterator[str]:
    if isinstance(item, Schema) and item.name != "public":
        yield f"schema {print_name(item.name)} (id {item.id})"
    if isinstance(item, Role):
        yield f"role {print_name(item.name)} (id {item.id})"
    if isinstance(item, AccessList):
        yield f"access list of {item.object} (id {item.id}, owner {item.owner})"
    if isinstance(item, ForeignServer):
        yield f"server {print_name(item.name)} (id {item.id}, {item.wrapper})"
    if isinstance(item, Comments):
        yield f"comments of {item.object} (id {item.id})"
    if isinstance(item, NAMELESS):
        return
    name = print_name(qualified_name(catalog, item))
    match item:
        case Table():
            yield f"table {name} (relation {item.id}{', dropped' if is_dropped(item) else ''})"
            yield from _column_lines(item)
            for key in item.foreign_keys:
                yield f"  foreign key {print_name(key.name)} to {_parent_name(catalog, key.parent)}"
        case Index():
            parts = ", ".join(_key_part_text(catalog, item, part) for part in item.parts)
            unique = "unique " if item.unique else ""
            table = _parent_name(catalog, item.table)
            yield f"{unique}index {name} (relation {item.id}, {item.state}) on {table} ({parts})"
        case Sequence():
            yield f"sequence {name} (id {item.id})"
        case ForeignTable():
            yield f"foreign table {name} (id {item.id}, server {item.server})"
        case PlainView():
            yield f"plain view {name} (id {item.id})"
            yield f"  as {item.definition}"
        case View():
            group = f", group {item.group}" if item.group else ""
            yield f"view {name} (relation {item.id}, {item.maintenance}, {item.state}{group})"
            yield f"  as {item.definition}"


def _parent_name(catalog: Catalog, id_: int) -> str:
    found = catalog.objects.get(id_)
    return (
        print_name(qualified_name(catalog, found))
        if isinstance(found, Table)
        else f"relation {id_}"
    )


def _column_lines(table: Table) -> Iterator[str]:
    for column in table.columns:
        if not column.dropped:
            words = [print_name(column.name), str(column.type)]
            words += ["not null"] if column.not_null else []
            words += [f"default {column.default}"] if column.default else []
            words += ["primary key"] if column.slot in table.primary_key else []
            yield "  " + " ".join(words)


def _key_part_text(catalog: Catalog, index: Index, part: model.KeyPart) -> str:
    table = catalog.objects[index.table]
    assert isinstance(table, Table)
    text = part.expression if part.slot is None else print_name(table.columns[part.slot].name)
    return f"{text} desc" if part.descending else f"{text}"
