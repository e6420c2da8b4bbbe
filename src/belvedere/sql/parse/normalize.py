"""Normalizes statements: those that differ only in their constants get the same text.

`SELECT a FROM t WHERE b = 'x' LIMIT 10` is `select a from t where b = $1 limit $2`. Constants are
numbered after the parameters that are there already; an ordinal in ORDER BY or GROUP BY is no
constant. The result can be parsed again.
"""

from __future__ import annotations

from belvedere.sql.parse.lexical.lexer import (
    BITS,
    END,
    INTEGER,
    NUMBER,
    PARAMETER,
    SIGN,
    STRING,
    WORD,
    SqlToken,
    tokenize,
)
from belvedere.sql.parse.lexical.render import render_tokens
from belvedere.sql.parse.queries.types import TYPE_WORDS

_CONSTANTS = frozenset({STRING, INTEGER, NUMBER, BITS})
_ENDS_LIST = frozenset(
    """
    having limit offset fetch for union intersect except window rows range groups returning
    """.split()
)


def normalize_statement(text: str) -> str:
    """The statement with `$n` for every constant."""
    tokens = [token for token in tokenize(text) if token.kind != END]
    number = max((int(one.text) for one in tokens if one.kind == PARAMETER), default=0)
    made: list[SqlToken] = []
    places = False
    for i, token in enumerate(tokens):
        if token.kind == WORD:
            places = token.text == "by" or (places and token.text not in _ENDS_LIST)
        elif token.kind == SIGN and token.text in "();":
            places = False
        if token.kind == PARAMETER:
            made.append(_make_parameter(token, int(token.text)))
        elif token.kind not in _CONSTANTS or (places and _is_ordinal(tokens, i)):
            made.append(token)
        else:
            number += 1
            made += _replace_constant(made, token, number)
    while made and made[-1].text == ";":
        made.pop()
    return render_tokens(made)


def _make_parameter(token: SqlToken, number: int) -> SqlToken:
    return token._replace(kind=SIGN, text=f"${number}")


def _is_ordinal(tokens: list[SqlToken], i: int) -> bool:
    """A number that is an item of ORDER BY or GROUP BY by itself."""
    after = tokens[i + 1] if i + 1 < len(tokens) else None
    alone = after is None or after.kind == WORD or after.text in (",", ")", ";")
    return tokens[i].kind == INTEGER and tokens[i - 1].text in ("by", ",") and alone


def _replace_constant(made: list[SqlToken], token: SqlToken, number: int) -> list[SqlToken]:
    """`date '..'` would not parse with a parameter, `$1::date` does."""
    last = made[-1] if made else None
    if token.kind == STRING and last is not None and last.kind == WORD and last.text in TYPE_WORDS:
        made.pop()
        return [
            _make_parameter(token, number),
            token._replace(kind=SIGN, text="::"),
            last._replace(kind=WORD),
        ]
    return [_make_parameter(token, number)]
