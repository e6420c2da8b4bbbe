"""Parses CREATE TABLE: columns, constraints, options."""

from __future__ import annotations

from dataclasses import dataclass, field

from belvedere.catalog.model import ReferentialAction
from belvedere.errors import InvalidInput, Unsupported
from belvedere.sql import definitions as d
from belvedere.sql.parse.lexical.lexer import WORD, syntax_error
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.queries.types import SERIAL, parse_column_type
from belvedere.sql.parse.statement_forms import CreateAsForm
from belvedere.sql.parse.statements.ddl_clauses import (
    parse_create_as,
    parse_qualified_name,
    parse_sequence_options,
    parse_with_options,
    read_expression_text,
)

_CONSTRAINT_WORDS = ("constraint", "primary", "unique", "check", "foreign", "exclude")


def parse_create_table(c: TokenCursor) -> d.CreateTable | CreateAsForm:
    """After CREATE TABLE."""
    if_not_exists = c.accept("if", "not", "exists")
    name = parse_qualified_name(c)
    if c.is_word("partition") or c.is_word("of"):
        raise Unsupported("partitioned table", position=c.token.start + 1)
    if not c.is_sign("(") or _is_name_list(c):
        return _parse_table_as(c, name, if_not_exists)
    c.next_token()
    columns: list[d.ColumnClause] = []
    constraints: list[d.Constraint] = []
    likes: list[d.LikeClause] = []
    if not c.is_sign(")"):
        c.parse_comma_list(lambda: _parse_element(c, columns, constraints, likes))
    c.expect_sign(")")
    _refuse_table_clauses(c)
    return d.CreateTable(
        name, tuple(columns), tuple(constraints), parse_with_options(c), if_not_exists, tuple(likes)
    )


def _is_name_list(c: TokenCursor) -> bool:
    """`CREATE TABLE t (a, b) AS ..`: names alone in the parentheses."""
    ahead = 2
    while c.peek(ahead).text == ",":
        ahead += 2
    return c.peek(ahead).text == ")" and c.peek(1).text != ")"


def _parse_table_as(c: TokenCursor, name: d.QualifiedName, if_not_exists: bool) -> CreateAsForm:
    columns = c.parse_name_list() if c.is_sign("(") else ()
    found = parse_with_options(c)
    c.expect("as")
    return parse_create_as(c, "table", name, columns, found, if_not_exists=if_not_exists)


def _refuse_table_clauses(c: TokenCursor) -> None:
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


def _parse_like(c: TokenCursor, place: int) -> d.LikeClause:
    c.expect("like")
    source, including = parse_qualified_name(c), set[str]()
    while c.is_any(("including", "excluding")):
        adds = c.next_token().text == "including"
        word = c.expect_one_of("all", *sorted(_LIKE), *_LIKE_NOTHING)
        these = _LIKE if word == "all" else {word} & _LIKE
        including = including | these if adds else including - these
    return d.LikeClause(source, place, frozenset(including))


def _parse_element(
    c: TokenCursor,
    columns: list[d.ColumnClause],
    constraints: list[d.Constraint],
    likes: list[d.LikeClause],
) -> None:
    if c.is_any(_CONSTRAINT_WORDS):
        constraints.append(parse_table_constraint(c))
    elif c.is_word("like"):
        likes.append(_parse_like(c, len(columns)))
    else:
        column, more = parse_column(c)
        columns.append(column)
        constraints += more


# -- columns ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class _ColumnBuilder:
    name: str
    not_null: bool | None = None
    default: str | None = None
    identity: str | None = None
    sequence: d.SequenceOptions | None = None
    generated: str | None = None
    constraints: list[d.Constraint] = field(default_factory=list)


def parse_column(c: TokenCursor) -> tuple[d.ColumnClause, list[d.Constraint]]:
    """One column, and the constraints written with it."""
    token = c.token
    made = _ColumnBuilder(c.parse_name())
    word = c.token.text if c.token.kind == WORD else ""
    serial = SERIAL.get(word)
    if serial is not None:
        c.next_token()
    type_ = serial if serial is not None else parse_column_type(c)
    if type_.element is not None:
        raise Unsupported("array column", position=token.start + 1, column=made.name)
    while _parse_column_constraint(c, made):
        pass
    if made.default is not None and (made.identity or serial or made.generated):
        raise syntax_error("multiple default values specified for column", token.start)
    column = d.ColumnClause(
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


def _parse_column_constraint(c: TokenCursor, made: _ColumnBuilder) -> bool:
    name = c.parse_name() if c.accept("constraint") else None
    if c.accept("not", "null"):
        made.not_null = _check_nullability(c, made.not_null, True)
    elif c.accept("null"):
        made.not_null = _check_nullability(c, made.not_null, False)
    elif c.accept("default"):
        made.default = read_expression_text(c, before_constraint=True)
    elif c.accept("generated"):
        _parse_generated(c, made)
    elif c.accept("collate"):
        _parse_collation(c)
    elif c.accept("primary", "key"):
        _refuse_deferral(c, "primary key")
        made.constraints.append(d.PrimaryKeyClause(name, (made.name,)))
    elif c.accept("unique"):
        distinct = _parse_nulls_distinct(c)
        _refuse_deferral(c, "unique")
        made.constraints.append(d.UniqueClause(name, (made.name,), distinct))
    elif c.accept("check"):
        made.constraints.append(d.CheckClause(name, _parse_check(c)))
    elif c.accept("references"):
        made.constraints.append(_parse_references(c, name, (made.name,)))
    elif name is not None:
        raise c.make_syntax_error()
    else:
        return False
    return True


def _check_nullability(c: TokenCursor, before: bool | None, now: bool) -> bool:
    if before is not None and before != now:
        raise InvalidInput("conflicting null and not null", sqlstate="42601")
    return now


def _parse_collation(c: TokenCursor) -> None:
    name = c.parse_qualified()[-1]
    if name not in ("C", "POSIX", "default", "ucs_basic"):
        raise Unsupported("collation", name=name, hint='text order is that of collation "C"')


def _parse_generated(c: TokenCursor, made: _ColumnBuilder) -> None:
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
    made.generated = read_expression_text(c)
    c.expect_sign(")")
    if not c.accept("stored"):
        raise Unsupported("virtual generated column", hint="add stored")


# -- constraints -----------------------------------------------------------------------------------


def parse_table_constraint(c: TokenCursor) -> d.Constraint:
    name = c.parse_name() if c.accept("constraint") else None
    at = c.token.start
    if c.accept("primary", "key"):
        columns = c.parse_name_list()
        if c.is_word("include"):
            raise Unsupported("include of a primary key", position=at + 1)
        _refuse_deferral(c, "primary key")
        return d.PrimaryKeyClause(name, columns)
    if c.accept("unique"):
        distinct = _parse_nulls_distinct(c)
        columns = c.parse_name_list()
        include = c.parse_name_list() if c.accept("include") else ()
        _refuse_deferral(c, "unique")
        return d.UniqueClause(name, columns, distinct, include)
    if c.accept("check"):
        return d.CheckClause(name, _parse_check(c))
    if c.accept("foreign", "key"):
        columns = c.parse_name_list()
        c.expect("references")
        return _parse_references(c, name, columns)
    if c.is_word("exclude"):
        raise Unsupported("exclusion constraint", position=at + 1)
    raise c.make_syntax_error()


def _parse_nulls_distinct(c: TokenCursor) -> bool:
    if c.accept("nulls", "not", "distinct"):
        return False
    c.accept("nulls", "distinct")
    return True


def _parse_check(c: TokenCursor) -> str:
    c.expect_sign("(")
    text = read_expression_text(c)
    c.expect_sign(")")
    if c.is_word("no", "inherit"):
        c.index += 2
    if c.is_word("not", "enforced"):
        raise Unsupported("check not enforced", position=c.token.start + 1)
    c.accept("enforced")
    return text


def _refuse_deferral(c: TokenCursor, what: str) -> None:
    if c.accept("not", "deferrable") or c.accept("initially", "immediate"):
        return
    if c.is_word("deferrable") or c.is_word("initially", "deferred"):
        raise Unsupported(f"deferrable {what}", position=c.token.start + 1)


_ACTIONS = {
    ("no", "action"): ReferentialAction.NO_ACTION,
    ("restrict",): ReferentialAction.RESTRICT,
    ("cascade",): ReferentialAction.CASCADE,
    ("set", "null"): ReferentialAction.SET_NULL,
    ("set", "default"): ReferentialAction.SET_DEFAULT,
}


def _parse_references(
    c: TokenCursor, name: str | None, columns: tuple[str, ...]
) -> d.ForeignKeyClause:
    parent = parse_qualified_name(c)
    parent_columns = c.parse_name_list() if c.is_sign("(") else ()
    actions = {"delete": ReferentialAction.NO_ACTION, "update": ReferentialAction.NO_ACTION}
    deferrable, deferred, enforced = False, False, True
    while True:
        if c.accept("on"):
            event = c.expect_one_of("delete", "update")
            actions[event] = _parse_action(c)
        elif c.accept("match"):
            _parse_match(c)
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
    return d.ForeignKeyClause(
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


def _parse_action(c: TokenCursor) -> ReferentialAction:
    for words, action in _ACTIONS.items():
        if c.accept(*words):
            if c.is_sign("("):
                raise Unsupported("column list of a foreign key action")
            return action
    raise c.make_syntax_error()


def _parse_match(c: TokenCursor) -> None:
    at = c.token.start
    if c.expect_one_of("simple", "full", "partial") != "simple":
        raise Unsupported("match full", position=at + 1)
