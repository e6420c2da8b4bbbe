"""The cursor over the tokens of a text, with the small rules that all of the parser shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from belvedere.errors import InvalidInput
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.keywords import NEEDS_AS, NOT_COLUMN
from belvedere.sql.parse.lexer import (
    END,
    INTEGER,
    QUOTED,
    SIGN,
    STRING,
    WORD,
    Token,
    syntax_error,
)

# A level of nesting costs each stage some frames of Python's stack, a sub-query more than a
# parenthesis; the sum stays well below the interpreter's limit of 1,000.
DEPTH_MAX = 96
QUERY_DEPTH = 6

T = TypeVar("T")


class Grammar(NamedTuple):
    """Parsing rules that other modules call; passed as values, so that imports have no cycle."""

    expression: Callable[[Cursor, int], t.Expr]
    query: Callable[[Cursor], t.Query]
    statement: Callable[[Cursor], t.DataStatement]


class Cursor:
    """`text` is the text of all statements; tokens carry offsets into it."""

    __slots__ = ("depth", "grammar", "index", "into", "text", "tokens")

    def __init__(self, tokens: list[Token], text: str, grammar: Grammar) -> None:
        self.tokens = tokens
        self.text = text
        self.grammar = grammar
        self.index = 0
        self.depth = 0
        self.into: tuple[int, int, int] | None = None  # SELECT at, tokens of its INTO clause

    # -- looking --------------------------------------------------------------------------------

    @property
    def token(self) -> Token:
        return self.tokens[self.index]

    def peek(self, ahead: int = 1) -> Token:
        return self.tokens[min(self.index + ahead, len(self.tokens) - 1)]

    def is_word(self, *words: str) -> bool:
        """Whether the coming tokens are these keywords."""
        tokens, index = self.tokens, self.index
        for word in words:
            token = tokens[index]
            if token.kind != WORD or token.text != word:
                return False
            index += 1
        return True

    def is_any(self, words: frozenset[str] | tuple[str, ...]) -> bool:
        token = self.tokens[self.index]
        return token.kind == WORD and token.text in words

    def is_sign(self, sign: str) -> bool:
        token = self.tokens[self.index]
        return token.kind == SIGN and token.text == sign

    @property
    def at_end(self) -> bool:
        token = self.tokens[self.index]
        return token.kind == END or (token.kind == SIGN and token.text == ";")

    # -- taking ---------------------------------------------------------------------------------

    def take(self) -> Token:
        token = self.tokens[self.index]
        if token.kind != END:
            self.index += 1
        return token

    def accept(self, *words: str) -> bool:
        if not self.is_word(*words):
            return False
        self.index += len(words)
        return True

    def accept_sign(self, sign: str) -> bool:
        if not self.is_sign(sign):
            return False
        self.index += 1
        return True

    def expect(self, *words: str) -> int:
        """Take these keywords; the offset of the first."""
        start = self.token.start
        for word in words:
            if not self.accept(word):
                raise self.error()
        return start

    def expect_sign(self, sign: str) -> int:
        start = self.token.start
        if not self.accept_sign(sign):
            raise self.error()
        return start

    def choice(self, *words: str) -> str:
        """Take one of these keywords."""
        for word in words:
            if self.accept(word):
                return word
        raise self.error()

    def error(self) -> InvalidInput:
        token = self.token
        if token.kind == END:
            return syntax_error("syntax error at end of input", token.start)
        return syntax_error("syntax error", token.start, near=self.text[token.start : token.end])

    # -- names and lists ------------------------------------------------------------------------

    def name(self) -> str:
        """A name of a column, table or other object."""
        token = self.tokens[self.index]
        if token.kind == QUOTED or (token.kind == WORD and token.text not in NOT_COLUMN):
            self.index += 1
            return token.text
        raise self.error()

    def label(self) -> str:
        """What may follow AS: any word."""
        token = self.tokens[self.index]
        if token.kind in (QUOTED, WORD):
            self.index += 1
            return token.text
        raise self.error()

    def bare_label(self) -> str | None:
        """A column label without AS, if there is one."""
        token = self.tokens[self.index]
        if token.kind == QUOTED or (token.kind == WORD and token.text not in NEEDS_AS):
            self.index += 1
            return token.text
        return None

    def table_alias(self) -> str | None:
        """`[AS] alias` of a table, if there is one."""
        if self.accept("as"):
            return self.name()
        token = self.tokens[self.index]
        if token.kind == QUOTED or (token.kind == WORD and token.text not in _NOT_TABLE_ALIAS):
            self.index += 1
            return token.text
        return None

    def qualified(self) -> tuple[str, ...]:
        """`name` or `schema.name`."""
        parts = [self.name()]
        while self.accept_sign("."):
            parts.append(self.label())
        return tuple(parts)

    def names(self) -> tuple[str, ...]:
        """`(a, b, ..)`"""
        self.expect_sign("(")
        found = self.comma_list(self.name)
        self.expect_sign(")")
        return found

    def comma_list(self, one: Callable[[], T]) -> tuple[T, ...]:
        items = [one()]
        while self.accept_sign(","):
            items.append(one())
        return tuple(items)

    def string(self) -> str:
        token = self.tokens[self.index]
        if token.kind != STRING:
            raise self.error()
        self.index += 1
        return token.text

    def integer(self) -> int:
        negative = self.accept_sign("-")
        token = self.tokens[self.index]
        if token.kind != INTEGER:
            raise self.error()
        self.index += 1
        return -int(token.text) if negative else int(token.text)

    def expression(self) -> t.Expr:
        return self.grammar.expression(self, 0)

    def expressions(self) -> tuple[t.Expr, ...]:
        return self.comma_list(self.expression)

    def query(self) -> t.Query:
        return self.grammar.query(self)

    def query_ahead(self) -> bool:
        """Whether a query begins here, perhaps inside more parentheses."""
        ahead = 0
        while self.peek(ahead).kind == SIGN and self.peek(ahead).text == "(":
            ahead += 1
            if ahead > DEPTH_MAX:
                raise too_complex(self.token.start)
        token = self.peek(ahead)
        return token.kind == WORD and token.text in ("select", "values", "with", "table")

    # -- limits ---------------------------------------------------------------------------------

    def enter(self, levels: int = 1) -> None:
        self.depth += levels
        if self.depth > DEPTH_MAX:
            raise too_complex(self.token.start)

    def leave(self, levels: int = 1) -> None:
        self.depth -= levels


_NOT_TABLE_ALIAS = NOT_COLUMN | {"set"}


def too_complex(at: int | None = None) -> InvalidInput:
    return InvalidInput(
        "statement is nested too deeply",
        sqlstate="54001",
        position=None if at is None else at + 1,
        hint="write it with fewer levels of parentheses, operators or sub-queries",
    )
