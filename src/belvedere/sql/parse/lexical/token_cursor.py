"""The cursor over the tokens of a text, with the small rules that all of the parser shares."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from belvedere.errors import InvalidInput
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.keywords import NEEDS_AS, NOT_COLUMN
from belvedere.sql.parse.lexical.lexer import (
    END,
    INTEGER,
    PARAMETER,
    QUOTED,
    SIGN,
    STRING,
    WORD,
    SqlToken,
    syntax_error,
)

# A level of nesting costs each stage some frames of Python's stack, a sub-query more than a
# parenthesis; the sum stays well below the interpreter's limit of 1,000.
DEPTH_MAX = 96
QUERY_DEPTH = 6

T = TypeVar("T")


class Grammar(NamedTuple):
    """Parsing rules that other modules call; passed as values, so that imports have no cycle."""

    expression: Callable[[TokenCursor, int], t.Expr]
    query: Callable[[TokenCursor], t.QueryTree]
    statement: Callable[[TokenCursor], t.DataStatement]


class TokenCursor:
    """`text` is the text of all statements; tokens carry offsets into it."""

    __slots__ = ("depth", "grammar", "index", "into", "text", "tokens")

    def __init__(self, tokens: list[SqlToken], text: str, grammar: Grammar) -> None:
        self.tokens = tokens
        self.text = text
        self.grammar = grammar
        self.index = 0
        self.depth = 0
        self.into: tuple[int, int, int] | None = None  # SELECT at, tokens of its INTO clause

    # -- looking --------------------------------------------------------------------------------

    @property
    def token(self) -> SqlToken:
        return self.tokens[self.index]

    def peek(self, ahead: int = 1) -> SqlToken:
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

    def next_token(self) -> SqlToken:
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
                raise self.make_syntax_error()
        return start

    def expect_sign(self, sign: str) -> int:
        start = self.token.start
        if not self.accept_sign(sign):
            raise self.make_syntax_error()
        return start

    def expect_one_of(self, *words: str) -> str:
        """Take one of these keywords."""
        for word in words:
            if self.accept(word):
                return word
        raise self.make_syntax_error()

    def make_syntax_error(self) -> InvalidInput:
        token = self.token
        if token.kind == END:
            return syntax_error("syntax error at end of input", token.start)
        near = self.text[token.start : token.end]
        return syntax_error(
            "syntax error", token.start, near=near, hint=self._find_parameter_hint(token, near)
        )

    def _find_parameter_hint(self, token: SqlToken, near: str) -> str | None:
        """What helps who writes parameters as another driver takes them."""
        follows = self.text[token.end : token.end + 1]
        if near == "%" and follows in ("s", "("):
            return "parameters are ? or $1, or :name with a mapping"
        if near == ":" and (follows.isalpha() or follows == "_"):
            return "values of :name come in a mapping, those of ? and $1 in a sequence"
        if token.kind == PARAMETER and self.index and self.tokens[self.index - 1].text == "in":
            return "a parameter is one value: write = ANY (?), and give a list"
        return None

    # -- names and lists ------------------------------------------------------------------------

    def parse_name(self) -> str:
        """A name of a column, table or other object."""
        token = self.tokens[self.index]
        if token.kind == QUOTED or (token.kind == WORD and token.text not in NOT_COLUMN):
            self.index += 1
            return token.text
        raise self.make_syntax_error()

    def parse_label(self) -> str:
        """What may follow AS: any word."""
        token = self.tokens[self.index]
        if token.kind in (QUOTED, WORD):
            self.index += 1
            return token.text
        raise self.make_syntax_error()

    def parse_bare_label(self) -> str | None:
        """A column label without AS, if there is one."""
        token = self.tokens[self.index]
        if token.kind == QUOTED or (token.kind == WORD and token.text not in NEEDS_AS):
            self.index += 1
            return token.text
        return None

    def parse_table_alias(self) -> str | None:
        """`[AS] alias` of a table, if there is one."""
        if self.accept("as"):
            return self.parse_name()
        token = self.tokens[self.index]
        if token.kind == QUOTED or (token.kind == WORD and token.text not in _NOT_TABLE_ALIAS):
            self.index += 1
            return token.text
        return None

    def parse_qualified(self) -> tuple[str, ...]:
        """`parse_name` or `schema.name`."""
        parts = [self.parse_name()]
        while self.accept_sign("."):
            parts.append(self.parse_label())
        return tuple(parts)

    def parse_name_list(self) -> tuple[str, ...]:
        """`(a, b, ..)`"""
        self.expect_sign("(")
        found = self.parse_comma_list(self.parse_name)
        self.expect_sign(")")
        return found

    def parse_comma_list(self, one: Callable[[], T]) -> tuple[T, ...]:
        items = [one()]
        while self.accept_sign(","):
            items.append(one())
        return tuple(items)

    def parse_string(self) -> str:
        token = self.tokens[self.index]
        if token.kind != STRING:
            raise self.make_syntax_error()
        self.index += 1
        return token.text

    def parse_integer(self) -> int:
        negative = self.accept_sign("-")
        token = self.tokens[self.index]
        if token.kind != INTEGER:
            raise self.make_syntax_error()
        self.index += 1
        return -int(token.text) if negative else int(token.text)

    def parse_expression(self) -> t.Expr:
        return self.grammar.expression(self, 0)

    def parse_expression_list(self) -> tuple[t.Expr, ...]:
        return self.parse_comma_list(self.parse_expression)

    def parse_query(self) -> t.QueryTree:
        return self.grammar.query(self)

    def is_query_ahead(self) -> bool:
        """Whether a query begins here, perhaps inside more parentheses."""
        ahead = 0
        while self.peek(ahead).kind == SIGN and self.peek(ahead).text == "(":
            ahead += 1
            if ahead > DEPTH_MAX:
                raise too_complex_error(self.token.start)
        token = self.peek(ahead)
        return token.kind == WORD and token.text in ("select", "values", "with", "table")

    # -- limits ---------------------------------------------------------------------------------

    def enter_level(self, levels: int = 1) -> None:
        self.depth += levels
        if self.depth > DEPTH_MAX:
            raise too_complex_error(self.token.start)

    def leave_level(self, levels: int = 1) -> None:
        self.depth -= levels


_NOT_TABLE_ALIAS = NOT_COLUMN | {"set"}


def too_complex_error(at: int | None = None) -> InvalidInput:
    return InvalidInput(
        "statement is nested too deeply",
        sqlstate="54001",
        position=None if at is None else at + 1,
        hint="write it with fewer levels of parentheses, operators or sub-queries",
    )
