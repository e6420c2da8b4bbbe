"""Parses CREATE TABLE: columns, constraints, options."""

from __future__ import annotations

from dataclasses import dataclass, field

from belvedere.catalog.model import Action
from belvedere.errors import InvalidInput, Unsupported
from belvedere.sql import definitions as d
from belvedere.sql.parse.cursor import Cursor
from belvedere.sql.parse.forms import QueryForm
from belvedere.sql.parse.lexer import WORD, syntax_error
from belvedere.sql.parse.names import (
    expression_text,
    options,
    parse_sequence_options,
    qualified,
    query_form,
)
from belvedere.sql.parse.types import SERIAL, parse_type

_CONSTRAINT_WORDS = ("constraint", "primary", "unique", "check", "foreign", "exclude")


def parse_create_table(c: Cursor) -> d.CreateTable | QueryForm:
    """After CREATE TABLE."""
    if_not_exists = c.accept("if", "not", "exists")
    name = qualified(c)
    if c.is_word("partition") or c.is_word("of"):
        raise Unsupported("partitioned table", position=c.token.start + 1)
    if not c.is_sign("(") or _is_name_list(c):
        return _create_as(c, name, if_not_exists)
    c.take()
    columns: list[d.ColumnDefinition] = []
    constraints: list[d.Constraint] = []
    likes: list[d.LikeClause] = []
    if not c.is_sign(")"):
        c.comma_list(lambda: _element(c, columns, constraints, likes))
    c.expect_sign(")")
    _refuse_table_clauses(c)
    return d.CreateTable(
        name, tuple(columns), tuple(constraints), options(c), if_not_exists, tuple(likes)
    )


def _is_name_list(c: Cursor) -> bool:
    """`CREATE TABLE t (a, b) AS ..`: names alone in the parentheses."""
    ahead = 2
    while c.peek(ahead).text == ",":
        ahead += 2
    return c.peek(ahead).text == ")" and c.peek(1).text != ")"


def _create_as(c: Cursor, name: d.QualifiedName, if_not_exists: bool) -> QueryForm:
    columns = c.names() if c.is_sign("(") else ()
    found = options(c)
    c.expect("as")
    return query_form(c, "table", name, columns, found, if_not_exists=if_not_exists)


def _refuse_table_clauses(c: Cursor) -> None:
    for words in (
        ("inherits",),
        ("partition", "by"),
        ("using",),
        ("on", "commit"),
        ("tablespace",),
    ):
        if c.is_word(*words):
            raise Unsupported(" ".join(words), position=c.token.start + 1)


_LIKE = frozenset("defaults constraints identity generated indexes".split())
_LIKE_NOTHING = ("comments", "compression", "statistics", "storage")


def _like(c: Cursor, place: int) -> d.LikeClause:
    c.expect("like")
    source, including = qualified(c), set[str]()
    while c.is_any(("including", "excluding")):
        adds = c.take().text == "including"
        word = c.choice("all", *sorted(_LIKE), *_LIKE_NOTHING)
        these = _LIKE if word == "all" else {word} & _LIKE
        including = including | these if adds else including - these
    return d.LikeClause(source, place, frozenset(including))


def _element(
    c: Cursor,
    columns: list[d.ColumnDefinition],
    constraints: list[d.Constraint],
    likes: list[d.LikeClause],
) -> None:
    if c.is_any(_CONSTRAINT_WORDS):
        constraints.append(parse_table_constraint(c))
    elif c.is_word("like"):
        likes.append(_like(c, len(columns)))
    else:
        column, more = parse_column(c)
        columns.append(column)
        constraints += more


# -- columns ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Column:
    name: str
    not_null: bool | None = None
    default: str | None = None
    identity: str | None = None
    sequence: d.SequenceOptions | None = None
    generated: str | None = None
    constraints: list[d.Constraint] = field(default_factory=list)


def parse_column(c: Cursor) -> tuple[d.ColumnDefinition, list[d.Constraint]]:
    """One column, and the constraints written with it."""
    token = c.token
    made = _Column(c.name())
    word = c.token.text if c.token.kind == WORD else ""
    serial = SERIAL.get(word)
    if serial is not None:
        c.take()
    type_ = serial if serial is not None else parse_type(c)
    if type_.element is not None:
        raise Unsupported("array column", position=token.start + 1, column=made.name)
    while _column_constraint(c, made):
        pass
    if made.default is not None and (made.identity or serial or made.generated):
        raise syntax_error("multiple default values specified for column", token.start)
    column = d.ColumnDefinition(
        name=made.name,
        type=type_,
        not_null=bool(made.not_null) or serial is not None or made.identity is not None,
        default=made.default,
        serial=serial is not None,
        identity=made.identity,
        sequence=made.sequence,
        generated=made.generated,
    )
    return column, made.constraints


def _column_constraint(c: Cursor, made: _Column) -> bool:
    name = c.name() if c.accept("constraint") else None
    if c.accept("not", "null"):
        made.not_null = _once(c, made.not_null, True)
    elif c.accept("null"):
        made.not_null = _once(c, made.not_null, False)
    elif c.accept("default"):
        made.default = expression_text(c, before_constraint=True)
    elif c.accept("generated"):
        _generated(c, made)
    elif c.accept("collate"):
        _collation(c)
    elif c.accept("primary", "key"):
        _deferral(c, "primary key")
        made.constraints.append(d.PrimaryKeyDefinition(name, (made.name,)))
    elif c.accept("unique"):
        distinct = _nulls_distinct(c)
        _deferral(c, "unique")
        made.constraints.append(d.UniqueDefinition(name, (made.name,), distinct))
    elif c.accept("check"):
        made.constraints.append(d.CheckDefinition(name, _check(c)))
    elif c.accept("references"):
        made.constraints.append(_references(c, name, (made.name,)))
    elif name is not None:
        raise c.error()
    else:
        return False
    return True


def _once(c: Cursor, before: bool | None, now: bool) -> bool:
    if before is not None and before != now:
        raise InvalidInput("conflicting null and not null", sqlstate="42601")
    return now


def _collation(c: Cursor) -> None:
    name = c.qualified()[-1]
    if name not in ("C", "POSIX", "default", "ucs_basic"):
        raise Unsupported("collation", name=name, hint='text order is that of collation "C"')


def _generated(c: Cursor, made: _Column) -> None:
    if c.accept("always"):
        kind = "always"
    else:
        c.expect("by", "default")
        kind = "by default"
    c.expect("as")
    if c.accept("identity"):
        made.identity = kind
        made.sequence = d.SequenceOptions()
        if c.accept_sign("("):
            made.sequence = parse_sequence_options(c)
            c.expect_sign(")")
        return
    c.expect_sign("(")
    made.generated = expression_text(c)
    c.expect_sign(")")
    if not c.accept("stored"):
        raise Unsupported("virtual generated column", hint="add stored")


# -- constraints -----------------------------------------------------------------------------------


def parse_table_constraint(c: Cursor) -> d.Constraint:
    name = c.name() if c.accept("constraint") else None
    at = c.token.start
    if c.accept("primary", "key"):
        columns = c.names()
        if c.is_word("include"):
            raise Unsupported("include of a primary key", position=at + 1)
        _deferral(c, "primary key")
        return d.PrimaryKeyDefinition(name, columns)
    if c.accept("unique"):
        distinct = _nulls_distinct(c)
        columns = c.names()
        include = c.names() if c.accept("include") else ()
        _deferral(c, "unique")
        return d.UniqueDefinition(name, columns, distinct, include)
    if c.accept("check"):
        return d.CheckDefinition(name, _check(c))
    if c.accept("foreign", "key"):
        columns = c.names()
        c.expect("references")
        return _references(c, name, columns)
    if c.is_word("exclude"):
        raise Unsupported("exclusion constraint", position=at + 1)
    raise c.error()


def _nulls_distinct(c: Cursor) -> bool:
    if c.accept("nulls", "not", "distinct"):
        return False
    c.accept("nulls", "distinct")
    return True


def _check(c: Cursor) -> str:
    c.expect_sign("(")
    text = expression_text(c)
    c.expect_sign(")")
    if c.is_word("no", "inherit"):
        c.index += 2
    if c.is_word("not", "enforced"):
        raise Unsupported("check not enforced", position=c.token.start + 1)
    c.accept("enforced")
    return text


def _deferral(c: Cursor, what: str) -> None:
    if c.accept("not", "deferrable") or c.accept("initially", "immediate"):
        return
    if c.is_word("deferrable") or c.is_word("initially", "deferred"):
        raise Unsupported(f"deferrable {what}", position=c.token.start + 1)


_ACTIONS = {
    ("no", "action"): Action.NO_ACTION,
    ("restrict",): Action.RESTRICT,
    ("cascade",): Action.CASCADE,
    ("set", "null"): Action.SET_NULL,
    ("set", "default"): Action.SET_DEFAULT,
}


def _references(c: Cursor, name: str | None, columns: tuple[str, ...]) -> d.ForeignKeyDefinition:
    parent = qualified(c)
    parent_columns = c.names() if c.is_sign("(") else ()
    actions = {"delete": Action.NO_ACTION, "update": Action.NO_ACTION}
    deferrable, deferred, enforced = False, False, True
    while True:
        if c.accept("on"):
            event = c.choice("delete", "update")
            actions[event] = _action(c)
        elif c.accept("match"):
            _match(c)
        elif c.accept("not", "deferrable"):
            deferrable = False
        elif c.accept("deferrable"):
            deferrable = True
        elif c.accept("initially", "deferred"):
            deferrable, deferred = True, True
        elif c.accept("initially", "immediate") or c.accept("enforced"):
            pass
        elif c.accept("not", "enforced"):
            enforced = False
        else:
            break
    return d.ForeignKeyDefinition(
        name,
        columns,
        parent,
        parent_columns,
        actions["delete"],
        actions["update"],
        enforced,
        deferrable,
        deferred,
    )


def _action(c: Cursor) -> Action:
    for words, action in _ACTIONS.items():
        if c.accept(*words):
            if c.is_sign("("):
                raise Unsupported("column list of a foreign key action")
            return action
    raise c.error()


def _match(c: Cursor) -> None:
    at = c.token.start
    if c.choice("simple", "full", "partial") != "simple":
        raise Unsupported("match full", position=at + 1)
