"""CREATE and ALTER SEQUENCE, and the sequences of identity columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from belvedere.catalog import definitions as wanted
from belvedere.catalog.definition_rules import require_column
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Sequence, Table
from belvedere.errors import InvalidInput, Unsupported
from belvedere.sql import definitions as d
from belvedere.types import BIGINT, Kind, SqlType

if TYPE_CHECKING:
    from belvedere.session.session import Session

PUBLIC = "public"
_BITS = {Kind.SMALLINT: 15, Kind.INTEGER: 31, Kind.BIGINT: 63}
replace = msgspec.structs.replace


def build_sequence_definition(
    name: str, schema: str, options: d.SequenceOptions
) -> wanted.SequenceDefinition:
    """A definition from the options, with PostgreSQL's defaults; 22023 when they contradict."""
    step = 1 if options.increment is None else options.increment
    lowest, highest = _find_integer_bounds(options.type or BIGINT)
    low = options.minimum if options.minimum is not None else 1 if step > 0 else lowest
    high = options.maximum if options.maximum is not None else highest if step > 0 else -1
    start = options.start if options.start is not None else low if step > 0 else high
    _require_valid_bounds(step, low, start, high)
    return wanted.SequenceDefinition(name, schema, start, step, low, high, bool(options.cycle))


def _find_integer_bounds(type_: SqlType) -> tuple[int, int]:
    if type_.kind not in _BITS:
        raise InvalidInput(
            "sequence type must be smallint, integer, or bigint", sqlstate="22023", type=str(type_)
        )
    return -(2 ** _BITS[type_.kind]), 2 ** _BITS[type_.kind] - 1


def _require_valid_bounds(step: int, low: int, start: int, high: int) -> None:
    if step == 0:
        raise InvalidInput("INCREMENT must not be zero", sqlstate="22023")
    if low >= high or not low <= start <= high:
        raise InvalidInput("sequence bounds contradict each other", sqlstate="22023")


def create_sequence(edit: CatalogEdit, statement: d.CreateSequence) -> None:
    name, options = statement.name, statement.options
    schema = name.schema or PUBLIC
    if statement.if_not_exists and edit.catalog.find_relation(name.name, schema) is not None:
        return
    made = edit.create_sequence(build_sequence_definition(name.name, schema, options))
    if options.owned_by:
        _set_sequence_owner(edit, made, options.owned_by, schema)


def alter_sequence(session: Session, edit: CatalogEdit, statement: d.AlterSequence) -> None:
    """ALTER SEQUENCE. Numbers reserved ahead are given back: the next value follows the last one
    that was returned, by the new options."""
    name, options = statement.name, statement.options
    schema = name.schema or PUBLIC
    if statement.if_exists and edit.catalog.find_relation(name.name, schema) is None:
        return
    sequence = edit.catalog.require_relation(Sequence, name.name, schema)
    numbers = session.host.sequences
    _, highest = _find_integer_bounds(options.type or BIGINT)
    step = sequence.increment if options.increment is None else options.increment
    made = replace(
        sequence,
        increment=step,
        minimum=sequence.minimum if options.minimum is None else options.minimum,
        maximum=min(sequence.maximum, highest) if options.maximum is None else options.maximum,
        start=sequence.start if options.start is None else options.start,
        cycle=sequence.cycle if options.cycle is None else options.cycle,
    )
    _require_valid_bounds(made.increment, made.minimum, made.start, made.maximum)
    value = made.start if options.restart is None else options.restart
    last = None if options.restarts else numbers.stored_value(sequence)
    current = value if options.restarts else last
    if last is not None and not sequence.minimum <= last <= sequence.maximum:
        current = None  # it was restarted, and has returned no value since
    if current is not None and not made.minimum <= current <= made.maximum:
        raise InvalidInput("RESTART value is out of the sequence's bounds", sqlstate="22023")
    edit.put(made)
    if options.owned_by is not None:
        _set_sequence_owner(edit, made.id, options.owned_by, schema)
    if options.restarts:
        numbers.restart_after(made, value - made.increment)
    elif last is not None:
        numbers.restart_after(made, last)


def _set_sequence_owner(edit: CatalogEdit, id_: int, column: tuple[str, ...], schema: str) -> None:
    """OWNED BY `table.column`: the sequence is dropped with the table. No names: no owner."""
    sequence = edit.catalog.get(id_)
    assert isinstance(sequence, Sequence)
    if not column:
        edit.put(replace(sequence, owner=None))
        return
    if len(column) < 2:
        raise InvalidInput("invalid OWNED BY option", sqlstate="42601", hint="name table.column")
    table = edit.catalog.require_relation(
        Table, column[-2], column[-3] if len(column) > 2 else schema
    )
    require_column(table, column[-1])
    edit.put(replace(sequence, owner=table.id))


# -- identity columns ------------------------------------------------------------------------------


def add_or_drop_identity(edit: CatalogEdit, table: Table, action: d.SetColumnIdentity) -> None:
    column = require_column(table, action.name)
    if action.identity is None:
        if column.identity is None:
            if action.if_exists:
                return
            raise InvalidInput(
                "column is not an identity column", sqlstate="55000", column=column.name
            )
        assert column.sequence is not None
        edit.drop_sequence(column.sequence)
        edit.replace_column(table.id, replace(column, identity=None, sequence=None))
        return
    if column.identity is not None or column.default is not None or column.sequence is not None:
        raise InvalidInput("column already has a default", sqlstate="55000", column=column.name)
    if not column.not_null:
        raise InvalidInput(
            "column must be not null before identity can be added",
            sqlstate="55000",
            column=column.name,
        )
    if column.type.kind not in _BITS:
        raise InvalidInput(
            "identity column type must be smallint, integer, or bigint", sqlstate="22023"
        )
    schema = next(one.name for one in edit.catalog.schemas if one.id == table.schema)
    name = edit.free_name(f"{table.name}_{column.name}_seq", schema)
    definition = build_sequence_definition(
        name, schema, build_identity_sequence_options(action.sequence, column.type)
    )
    made = edit.create_sequence(definition, owner=table.id)
    edit.replace_column(table.id, replace(column, identity=action.identity, sequence=made))


def build_identity_sequence_options(
    options: d.SequenceOptions | None, type_: SqlType
) -> d.SequenceOptions:
    """The sequence options of an identity column: its bounds are those of the column's type."""
    found = options or d.SequenceOptions()
    if found.owned_by is not None or found.restarts:
        raise Unsupported("option of an identity column")
    return found if found.type is not None else replace(found, type=type_)
