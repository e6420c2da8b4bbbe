"""Named parameters: `:name` in a statement, values from a mapping.

    con.execute("SELECT * FROM orders WHERE id = :id", {"id": 7})

A statement has either `:name`, `?` or `$1`. Names are found by the lexer, so one in a string or a
comment is none, and `::` is a cast. The colon touches its name: a slice is written `a[1 : n]`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

from belvedere.errors import InvalidInput
from belvedere.sql.parse.lexical.lexer import PARAMETER, SIGN, WORD, tokenize


class NumberedStatement(NamedTuple):
    """A statement with `$1`, `$2`, .. instead of names. `moves`: where in `text` each begins, and
    by how many characters the text behind it is shorter than what the program wrote."""

    text: str
    names: tuple[str, ...]
    moves: tuple[tuple[int, int], ...]

    def select_values(self, parameters: Mapping[str, Any]) -> tuple[Any, ...]:
        missing = [name for name in self.names if name not in parameters]
        if missing:
            raise InvalidInput(
                "no value for a named parameter",
                sqlstate="42P02",
                hint="in a slice, write a space behind the colon: a[1 : n]",
                name=missing[0],
            )
        return tuple([parameters[name] for name in self.names])

    def original_position(self, position: int | None) -> int | None:
        """The position of an error in the statement as it was written."""
        if position is None:
            return None
        moved = [by for at, by in self.moves if at < position - 1]
        return position + (moved[-1] if moved else 0)


@lru_cache(maxsize=1024)
def number_parameters(text: str) -> NumberedStatement:
    tokens = tokenize(text)
    names: dict[str, int] = {}
    parts: list[str] = []
    moves: list[tuple[int, int]] = []
    end = made = shorter = 0
    for colon, word in pairwise(tokens):
        if colon.kind == PARAMETER:
            raise InvalidInput(
                "statement mixes :name with other parameters"
                if ":" in text
                else "a mapping was given for the values of ? or $1",
                sqlstate="42601",
                position=colon.start + 1,
                hint="give a sequence of values for ? and $1, a mapping for :name",
            )
        named = colon.kind == SIGN and colon.text == ":" and word.kind == WORD
        if not named or colon.end != word.start:
            continue
        name = text[word.start : word.end]
        number = f"${names.setdefault(name, len(names) + 1)}"
        parts += [text[end : colon.start], number]
        made += colon.start - end
        moves.append((made, shorter := shorter + word.end - colon.start - len(number)))
        made, end = made + len(number), word.end
    return NumberedStatement("".join([*parts, text[end:]]), tuple(names), tuple(moves))
