"""Parses utility statements: transactions, settings, PREPARE, EXPLAIN, COPY, ANALYZE, .."""

from __future__ import annotations

from belvedere.errors import Unsupported
from belvedere.sql import statements as s
from belvedere.sql.definitions import Options, QualifiedName
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.lexer import QUOTED, STRING, WORD
from belvedere.sql.parse.lexical.token_cursor import TokenCursor
from belvedere.sql.parse.queries.types import parse_type
from belvedere.sql.parse.statement_forms import CopyForm, ExecuteForm
from belvedere.sql.parse.statements.ddl_clauses import parse_option_value, parse_qualified_name
from belvedere.types import SqlType

# -- transactions ----------------------------------------------------------------------------------


def parse_begin(c: TokenCursor) -> s.Begin:
    if c.accept("start"):
        c.expect("transaction")
    else:
        c.expect("begin")
        _skip_work(c)
    return s.Begin(_parse_modes(c))


def _skip_work(c: TokenCursor) -> None:
    if c.is_any(("work", "transaction")):
        c.next_token()


def _parse_modes(c: TokenCursor) -> s.TransactionModes:
    isolation, read_only, deferrable = None, None, None
    while not c.at_end:
        if c.accept("isolation", "level"):
            isolation = _parse_isolation(c)
        elif c.accept("read"):
            read_only = c.expect_one_of("only", "write") == "only"
        elif c.accept("not", "deferrable"):
            deferrable = False
        elif c.accept("deferrable"):
            deferrable = True
        else:
            raise c.make_syntax_error()
        c.accept_sign(",")
    return s.TransactionModes(isolation, read_only, deferrable)


def _parse_isolation(c: TokenCursor) -> str:
    if c.accept("serializable"):
        return "serializable"
    if c.accept("repeatable", "read"):
        return "repeatable read"
    c.expect("read")
    return f"read {c.expect_one_of('committed', 'uncommitted')}"


def parse_commit(c: TokenCursor) -> s.Commit:
    c.expect_one_of("commit", "end")
    if c.is_word("prepared"):
        raise Unsupported("two-phase commit", position=c.token.start + 1)
    _skip_work(c)
    return s.Commit(_parse_chain(c))


def parse_rollback(c: TokenCursor) -> s.Rollback | s.RollbackTo:
    c.expect_one_of("rollback", "abort")
    if c.is_word("prepared"):
        raise Unsupported("two-phase commit", position=c.token.start + 1)
    _skip_work(c)
    if c.accept("to"):
        c.accept("savepoint")
        return s.RollbackTo(c.parse_name())
    return s.Rollback(_parse_chain(c))


def _parse_chain(c: TokenCursor) -> bool:
    if not c.accept("and"):
        return False
    chain = not c.accept("no")
    c.expect("chain")
    return chain


def parse_savepoint(c: TokenCursor) -> s.Savepoint:
    c.expect("savepoint")
    return s.Savepoint(c.parse_name())


def parse_release(c: TokenCursor) -> s.ReleaseSavepoint:
    c.expect("release")
    c.accept("savepoint")
    return s.ReleaseSavepoint(c.parse_name())


def parse_lock(c: TokenCursor) -> s.LockTable:
    c.expect("lock")
    c.accept("table")
    names = c.parse_comma_list(lambda: parse_qualified_name(c))
    mode = "access exclusive"
    if c.accept("in"):
        words = []
        while not c.is_word("mode"):
            words.append(c.expect_one_of("access", "row", "share", "exclusive", "update"))
        c.expect("mode")
        mode = " ".join(words)
    return s.LockTable(names, mode, c.accept("nowait"))


# -- settings --------------------------------------------------------------------------------------


def parse_set(c: TokenCursor) -> s.SetVariable | s.SetTransaction | s.SetConstraints:
    c.expect("set")
    if c.accept("constraints"):
        names = () if c.accept("all") else c.parse_comma_list(lambda: parse_qualified_name(c))
        return s.SetConstraints(names, c.expect_one_of("deferred", "immediate") == "deferred")
    if c.accept("session", "characteristics", "as", "transaction"):
        return s.SetTransaction(_parse_modes(c), session=True)
    if c.accept("transaction"):
        if c.is_word("snapshot"):
            raise Unsupported("set transaction snapshot", position=c.token.start + 1)
        return s.SetTransaction(_parse_modes(c))
    local = c.accept("local")
    if not local:
        c.accept("session")
    if c.accept("time", "zone"):
        if c.is_any(("default", "local")):
            c.next_token()
            return s.SetVariable("timezone", None, local)
        value = c.parse_name() if c.token.kind == QUOTED else parse_option_value(c)
        return s.SetVariable("timezone", value, local)
    if c.is_word("session", "authorization"):
        c.next_token()  # after LOCAL
    for word, name in (("role", "role"), ("authorization", "session_authorization")):
        if c.is_word(word) and c.peek().text not in ("=", "to"):
            c.next_token()
            return s.SetVariable(name, _parse_role_value(c), local)
    name = _parse_variable_name(c)
    if not c.accept_sign("="):
        c.expect("to")
    if c.accept("default"):
        return s.SetVariable(name, None, local)
    return s.SetVariable(name, ", ".join(c.parse_comma_list(lambda: parse_option_value(c))), local)


def _parse_role_value(c: TokenCursor) -> str | None:
    """The name of a role, as a name or as text; None: DEFAULT."""
    if c.accept("default"):
        return None
    return c.parse_string() if c.token.kind == STRING else c.parse_name()


def _parse_variable_name(c: TokenCursor) -> str:
    return ".".join(c.parse_qualified()).lower()


def parse_show(c: TokenCursor) -> s.ShowVariable:
    c.expect("show")
    if c.accept("all"):
        return s.ShowVariable("all")
    if c.accept("time", "zone"):
        return s.ShowVariable("timezone")
    if c.accept("session", "authorization"):
        return s.ShowVariable("session_authorization")
    if c.accept("transaction", "isolation", "level"):
        return s.ShowVariable("transaction_isolation")
    return s.ShowVariable(_parse_variable_name(c))


def parse_reset(c: TokenCursor) -> s.ResetVariable:
    c.expect("reset")
    if c.accept("all"):
        return s.ResetVariable("all")
    if c.accept("time", "zone"):
        return s.ResetVariable("timezone")
    if c.accept("session", "authorization"):
        return s.ResetVariable("session_authorization")
    return s.ResetVariable(_parse_variable_name(c))


# -- PREPARE ---------------------------------------------------------------------------------------


def parse_prepare(c: TokenCursor) -> s.Prepare:
    c.expect("prepare")
    if c.is_word("transaction"):
        raise Unsupported("two-phase commit", position=c.token.start + 1)
    name = c.parse_name()
    types: tuple[SqlType, ...] = ()
    if c.accept_sign("("):
        types = c.parse_comma_list(lambda: parse_type(c))
        c.expect_sign(")")
    c.expect("as")
    start = c.token.start
    c.grammar.statement(c)
    return s.Prepare(name, types, c.text[start : c.tokens[c.index - 1].end])


def parse_execute(c: TokenCursor) -> ExecuteForm:
    c.expect("execute")
    name = c.parse_name()
    arguments: tuple[t.Expr, ...] = ()
    if c.accept_sign("("):
        arguments = c.parse_expression_list()
        c.expect_sign(")")
    return ExecuteForm(name, arguments)


def parse_deallocate(c: TokenCursor) -> s.Deallocate:
    c.expect("deallocate")
    c.accept("prepare")
    return s.Deallocate(None if c.accept("all") else c.parse_name())


def parse_discard(c: TokenCursor) -> s.Discard:
    c.expect("discard")
    return s.Discard(c.expect_one_of("all", "plans", "sequences", "temp", "temporary"))


# -- EXPLAIN, ANALYZE, VACUUM ----------------------------------------------------------------------


def parse_explain_options(c: TokenCursor) -> Options:
    c.expect("explain")
    if c.is_sign("("):
        return parse_word_options(c)
    found = []
    for word in ("analyze", "verbose"):
        if c.accept(word):
            found.append((word, "true"))
    return tuple(found)


def parse_word_options(c: TokenCursor) -> Options:
    """`(name [value], ..)`, as EXPLAIN, COPY and VACUUM take them."""

    def parse_option() -> tuple[str, str]:
        name = c.parse_label()
        if c.is_sign(",") or c.is_sign(")"):
            return name, "true"
        if c.accept_sign("("):
            names = c.parse_comma_list(c.parse_label)
            c.expect_sign(")")
            return name, ",".join(names)
        if c.accept_sign("*"):
            return name, "*"
        quoted = c.token.kind == STRING
        value = parse_option_value(c)
        return name, value if quoted else value.lower()

    c.expect_sign("(")
    found = c.parse_comma_list(parse_option)
    c.expect_sign(")")
    return found


def parse_analyze(c: TokenCursor) -> s.Analyze:
    c.expect("analyze")
    if c.is_sign("("):
        parse_word_options(c)
    c.accept("verbose")
    return s.Analyze(_parse_table_list(c))


def parse_reindex(c: TokenCursor) -> s.Reindex:
    """Indexes are kept right by every commit, so there is nothing to do but to find the object."""
    c.expect("reindex")
    if c.accept_sign("("):
        c.parse_comma_list(c.parse_label)
        c.expect_sign(")")
    kind = c.expect_one_of("table", "index", "schema", "database", "system")
    c.accept("concurrently")
    if kind in ("table", "index"):
        return s.Reindex(kind, parse_qualified_name(c))
    return s.Reindex(kind, QualifiedName(None, "" if c.at_end else c.parse_name()))


def parse_vacuum(c: TokenCursor) -> s.Vacuum:
    c.expect("vacuum")
    found = dict(parse_word_options(c)) if c.is_sign("(") else {}
    analyze = found.get("analyze", "false") in ("true", "on", "1")
    while c.is_any(("full", "freeze", "verbose", "analyze")):
        analyze = c.next_token().text == "analyze" or analyze
    return s.Vacuum(_parse_table_list(c), analyze)


def _parse_table_list(c: TokenCursor) -> tuple[QualifiedName, ...]:
    def parse_table() -> QualifiedName:
        name = parse_qualified_name(c)
        if c.is_sign("("):
            c.parse_name_list()
        return name

    return () if c.at_end else c.parse_comma_list(parse_table)


# -- COPY ------------------------------------------------------------------------------------------


def parse_copy(c: TokenCursor) -> CopyForm:
    c.expect("copy")
    at = c.token.start
    table, query = None, None
    columns: tuple[tuple[str, int], ...] = ()
    if c.accept_sign("("):
        query = c.grammar.statement(c)
        c.expect_sign(")")
    else:
        table = c.parse_qualified()
        columns = _parse_copy_columns(c) if c.is_sign("(") else columns
    direction = c.expect_one_of("from", "to")
    if direction == "from" and query is not None:
        raise c.make_syntax_error()
    path, options = _parse_path(c), _parse_copy_options(c)
    if c.is_word("where"):
        raise Unsupported("COPY .. WHERE", position=c.token.start + 1)
    return CopyForm(direction, table, columns, query, path, options, at)


def _parse_copy_columns(c: TokenCursor) -> tuple[tuple[str, int], ...]:
    def parse_column() -> tuple[str, int]:
        at = c.token.start
        return c.parse_name(), at

    c.expect_sign("(")
    found = c.parse_comma_list(parse_column)
    c.expect_sign(")")
    return found


def _parse_path(c: TokenCursor) -> str | None:
    if c.accept("stdin") or c.accept("stdout"):
        return None
    if c.is_word("program"):
        raise Unsupported("copy program", position=c.token.start + 1)
    return c.parse_string()


def _parse_copy_options(c: TokenCursor) -> Options:
    c.accept("with")
    if c.is_sign("("):
        return parse_word_options(c)
    found: list[tuple[str, str]] = []
    while c.token.kind == WORD and not c.at_end and not c.is_word("where"):
        word = c.next_token().text
        match word:
            case "csv" | "binary":
                found.append(("format", word))
            case "header" | "freeze":
                found.append((word, "true"))
            case "delimiter" | "null" | "quote" | "escape" | "encoding":
                c.accept("as")
                found.append((word, c.parse_string()))
            case _:
                c.index -= 1
                raise c.make_syntax_error()
    return tuple(found)
