"""Parses utility statements: transactions, settings, PREPARE, EXPLAIN, COPY, ANALYZE, .."""

from __future__ import annotations

from belvedere.errors import Unsupported
from belvedere.sql import statements as s
from belvedere.sql.definitions import Options, QualifiedName
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.cursor import Cursor
from belvedere.sql.parse.forms import CopyForm, ExecuteForm
from belvedere.sql.parse.lexer import STRING, WORD
from belvedere.sql.parse.names import option_value, qualified
from belvedere.sql.parse.types import parse_type
from belvedere.types import SqlType

# -- transactions ----------------------------------------------------------------------------------


def parse_begin(c: Cursor) -> s.Begin:
    if c.accept("start"):
        c.expect("transaction")
    else:
        c.expect("begin")
        _work(c)
    return s.Begin(_modes(c))


def _work(c: Cursor) -> None:
    if c.is_any(("work", "transaction")):
        c.take()


def _modes(c: Cursor) -> s.TransactionModes:
    isolation, read_only, deferrable = None, None, None
    while not c.at_end:
        if c.accept("isolation", "level"):
            isolation = _isolation(c)
        elif c.accept("read"):
            read_only = c.choice("only", "write") == "only"
        elif c.accept("not", "deferrable"):
            deferrable = False
        elif c.accept("deferrable"):
            deferrable = True
        else:
            raise c.error()
        c.accept_sign(",")
    return s.TransactionModes(isolation, read_only, deferrable)


def _isolation(c: Cursor) -> str:
    if c.accept("serializable"):
        return "serializable"
    if c.accept("repeatable", "read"):
        return "repeatable read"
    c.expect("read")
    c.choice("committed", "uncommitted")  # there is nothing weaker than read committed
    return "read committed"


def parse_commit(c: Cursor) -> s.Commit:
    c.choice("commit", "end")
    if c.is_word("prepared"):
        raise Unsupported("two-phase commit", position=c.token.start + 1)
    _work(c)
    return s.Commit(_chain(c))


def parse_rollback(c: Cursor) -> s.Rollback | s.RollbackTo:
    c.choice("rollback", "abort")
    if c.is_word("prepared"):
        raise Unsupported("two-phase commit", position=c.token.start + 1)
    _work(c)
    if c.accept("to"):
        c.accept("savepoint")
        return s.RollbackTo(c.name())
    return s.Rollback(_chain(c))


def _chain(c: Cursor) -> bool:
    if not c.accept("and"):
        return False
    chain = not c.accept("no")
    c.expect("chain")
    return chain


def parse_savepoint(c: Cursor) -> s.Savepoint:
    c.expect("savepoint")
    return s.Savepoint(c.name())


def parse_release(c: Cursor) -> s.ReleaseSavepoint:
    c.expect("release")
    c.accept("savepoint")
    return s.ReleaseSavepoint(c.name())


def parse_lock(c: Cursor) -> s.LockTable:
    c.expect("lock")
    c.accept("table")
    names = c.comma_list(lambda: qualified(c))
    mode = "access exclusive"
    if c.accept("in"):
        words = []
        while not c.is_word("mode"):
            words.append(c.choice("access", "row", "share", "exclusive", "update"))
        c.expect("mode")
        mode = " ".join(words)
    return s.LockTable(names, mode, c.accept("nowait"))


# -- settings --------------------------------------------------------------------------------------


def parse_set(c: Cursor) -> s.SetVariable | s.SetTransaction | s.SetConstraints:
    c.expect("set")
    if c.accept("constraints"):
        names = () if c.accept("all") else c.comma_list(lambda: qualified(c))
        return s.SetConstraints(names, c.choice("deferred", "immediate") == "deferred")
    if c.accept("session", "characteristics", "as", "transaction"):
        return s.SetTransaction(_modes(c), session=True)
    if c.accept("transaction"):
        if c.is_word("snapshot"):
            raise Unsupported("set transaction snapshot", position=c.token.start + 1)
        return s.SetTransaction(_modes(c))
    local = c.accept("local")
    if not local:
        c.accept("session")
    if c.accept("time", "zone"):
        value = None if c.is_any(("default", "local")) else option_value(c)
        if value is None:
            c.take()
        return s.SetVariable("timezone", value, local)
    if c.is_any(("role", "authorization")):
        raise Unsupported(f"set {c.token.text}", position=c.token.start + 1)
    name = _variable(c)
    if not c.accept_sign("="):
        c.expect("to")
    if c.accept("default"):
        return s.SetVariable(name, None, local)
    return s.SetVariable(name, ", ".join(c.comma_list(lambda: option_value(c))), local)


def _variable(c: Cursor) -> str:
    return ".".join(c.qualified()).lower()


def parse_show(c: Cursor) -> s.ShowVariable:
    c.expect("show")
    if c.accept("all"):
        return s.ShowVariable("all")
    if c.accept("time", "zone"):
        return s.ShowVariable("timezone")
    if c.accept("transaction", "isolation", "level"):
        return s.ShowVariable("transaction_isolation")
    return s.ShowVariable(_variable(c))


def parse_reset(c: Cursor) -> s.ResetVariable:
    c.expect("reset")
    if c.accept("all"):
        return s.ResetVariable("all")
    if c.accept("time", "zone"):
        return s.ResetVariable("timezone")
    return s.ResetVariable(_variable(c))


# -- PREPARE ---------------------------------------------------------------------------------------


def parse_prepare(c: Cursor) -> s.Prepare:
    c.expect("prepare")
    if c.is_word("transaction"):
        raise Unsupported("two-phase commit", position=c.token.start + 1)
    name = c.name()
    types: tuple[SqlType, ...] = ()
    if c.accept_sign("("):
        types = c.comma_list(lambda: parse_type(c))
        c.expect_sign(")")
    c.expect("as")
    start = c.token.start
    c.grammar.statement(c)
    return s.Prepare(name, types, c.text[start : c.tokens[c.index - 1].end])


def parse_execute(c: Cursor) -> ExecuteForm:
    c.expect("execute")
    name = c.name()
    arguments: tuple[t.Expr, ...] = ()
    if c.accept_sign("("):
        arguments = c.expressions()
        c.expect_sign(")")
    return ExecuteForm(name, arguments)


def parse_deallocate(c: Cursor) -> s.Deallocate:
    c.expect("deallocate")
    c.accept("prepare")
    return s.Deallocate(None if c.accept("all") else c.name())


def parse_discard(c: Cursor) -> s.Discard:
    c.expect("discard")
    return s.Discard(c.choice("all", "plans", "sequences", "temp", "temporary"))


# -- EXPLAIN, ANALYZE, VACUUM ----------------------------------------------------------------------


def parse_explain_options(c: Cursor) -> Options:
    c.expect("explain")
    if c.is_sign("("):
        return parse_words(c)
    found = []
    for word in ("analyze", "verbose"):
        if c.accept(word):
            found.append((word, "true"))
    return tuple(found)


def parse_words(c: Cursor) -> Options:
    """`(name [value], ..)`, as EXPLAIN, COPY and VACUUM take them."""

    def one() -> tuple[str, str]:
        name = c.label()
        if c.is_sign(",") or c.is_sign(")"):
            return name, "true"
        if c.accept_sign("("):
            names = c.comma_list(c.label)
            c.expect_sign(")")
            return name, ",".join(names)
        if c.accept_sign("*"):
            return name, "*"
        quoted = c.token.kind == STRING
        value = option_value(c)
        return name, value if quoted else value.lower()

    c.expect_sign("(")
    found = c.comma_list(one)
    c.expect_sign(")")
    return found


def parse_analyze(c: Cursor) -> s.Analyze:
    c.expect("analyze")
    if c.is_sign("("):
        parse_words(c)
    c.accept("verbose")
    return s.Analyze(_table_list(c))


def parse_reindex(c: Cursor) -> s.Reindex:
    """Indexes are kept right by every commit, so there is nothing to do but to find the object."""
    c.expect("reindex")
    if c.accept_sign("("):
        c.comma_list(c.label)
        c.expect_sign(")")
    kind = c.choice("table", "index", "schema", "database", "system")
    c.accept("concurrently")
    if kind in ("table", "index"):
        return s.Reindex(kind, qualified(c))
    return s.Reindex(kind, QualifiedName(None, "" if c.at_end else c.name()))


def parse_vacuum(c: Cursor) -> s.Vacuum:
    c.expect("vacuum")
    found = dict(parse_words(c)) if c.is_sign("(") else {}
    analyze = found.get("analyze", "false") in ("true", "on", "1")
    while c.is_any(("full", "freeze", "verbose", "analyze")):
        analyze = c.take().text == "analyze" or analyze
    return s.Vacuum(_table_list(c), analyze)


def _table_list(c: Cursor) -> tuple[QualifiedName, ...]:
    def one() -> QualifiedName:
        name = qualified(c)
        if c.is_sign("("):
            c.names()
        return name

    return () if c.at_end else c.comma_list(one)


# -- COPY ------------------------------------------------------------------------------------------


def parse_copy(c: Cursor) -> CopyForm:
    c.expect("copy")
    at = c.token.start
    table, query = None, None
    columns: tuple[tuple[str, int], ...] = ()
    if c.accept_sign("("):
        query = c.grammar.statement(c)
        c.expect_sign(")")
    else:
        table = c.qualified()
        columns = _copy_columns(c) if c.is_sign("(") else columns
    direction = c.choice("from", "to")
    if direction == "from" and query is not None:
        raise c.error()
    return CopyForm(direction, table, columns, query, _path(c), _copy_options(c), at)


def _copy_columns(c: Cursor) -> tuple[tuple[str, int], ...]:
    def one() -> tuple[str, int]:
        at = c.token.start
        return c.name(), at

    c.expect_sign("(")
    found = c.comma_list(one)
    c.expect_sign(")")
    return found


def _path(c: Cursor) -> str | None:
    if c.accept("stdin") or c.accept("stdout"):
        return None
    if c.is_word("program"):
        raise Unsupported("copy program", position=c.token.start + 1)
    return c.string()


def _copy_options(c: Cursor) -> Options:
    c.accept("with")
    if c.is_sign("("):
        return parse_words(c)
    found: list[tuple[str, str]] = []
    while c.token.kind == WORD and not c.at_end:
        word = c.take().text
        match word:
            case "csv" | "binary":
                found.append(("format", word))
            case "header" | "freeze":
                found.append((word, "true"))
            case "delimiter" | "null" | "quote" | "escape" | "encoding":
                c.accept("as")
                found.append((word, c.string()))
            case _:
                c.index -= 1
                raise c.error()
    return tuple(found)
