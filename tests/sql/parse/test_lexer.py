from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belvedere.errors import Error, InvalidInput
from belvedere.sql.parse.lexical import lexer as x
from belvedere.sql.parse.lexical.lexer import tokenize
from belvedere.sql.parse.lexical.render import render_tokens


def shown(text: str) -> list[tuple[int, str]]:
    return [(token.kind, token.text) for token in tokenize(text)[:-1]]


@pytest.mark.parametrize(
    ("text", "kind", "value"),
    [
        ("Name", x.WORD, "name"),
        ('"Na""me"', x.QUOTED, 'Na"me'),
        ("ÄB", x.WORD, "Äb"),
        ("'it''s'", x.STRING, "it's"),
        ("'a'\n 'b'", x.STRING, "ab"),
        (r"E'\x41\101\u0042\n\''", x.STRING, "AAB\n'"),
        (r"U&'\0041\+000042'", x.STRING, "AB"),
        ("$$a'b$$", x.STRING, "a'b"),
        ("$tag$a$$b$tag$", x.STRING, "a$$b"),
        ("12", x.INTEGER, "12"),
        ("0x1F", x.INTEGER, "31"),
        ("1_000", x.INTEGER, "1000"),
        ("1.5e-3", x.NUMBER, "1.5e-3"),
        (".5", x.NUMBER, ".5"),
        ("5.", x.NUMBER, "5."),
        ("$7", x.PARAMETER, "7"),
        ("!=", x.SIGN, "<>"),
        ("->>", x.SIGN, "->>"),
        ("a" * 100, x.WORD, "a" * 63),
    ],
)
def test_a_token_is_read_as_postgresql_reads_it(text: str, kind: int, value: str) -> None:
    assert shown(text) == [(kind, value)]


def test_an_operator_gives_up_a_trailing_sign_unless_it_has_a_rarer_character() -> None:
    assert shown("a=-1") == [(x.WORD, "a"), (x.SIGN, "="), (x.SIGN, "-"), (x.INTEGER, "1")]
    assert shown("a@-1")[1] == (x.SIGN, "@-")


def test_comments_nest_and_are_skipped() -> None:
    assert shown("a /* b /* c */ d */ e -- f\n g") == [(x.WORD, "a"), (x.WORD, "e"), (x.WORD, "g")]


def test_question_marks_are_numbered() -> None:
    assert shown("? ?") == [(x.PARAMETER, "1"), (x.PARAMETER, "2")]


@pytest.mark.parametrize(
    "text",
    ["'a", '"a', "/* a", "$$a", "$x$a$y$", "1a", '""', "? $1", "a\0b", "E'a", "U&'a", "\x01"],
)
def test_a_text_that_is_no_token_is_a_syntax_error_with_a_position(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        tokenize(text)
    assert caught.value.sqlstate == "42601"
    assert caught.value.position is not None


def test_an_escape_that_is_no_character_is_refused() -> None:
    for text in (r"E'\u0000'", r"U&'\D800'", r"E'\UFFFFFFFF'"):
        with pytest.raises(InvalidInput):
            tokenize(text)


def test_bit_strings_are_tokens_of_their_own() -> None:
    assert shown("X'1f' b'01'") == [(x.BITS, "x1f"), (x.BITS, "b01")]
    assert render_tokens(tokenize("X'1f'")[:-1]) == "x'1f'"
    with pytest.raises(InvalidInput) as caught:
        tokenize("b'12'")
    assert caught.value.sqlstate == "22P02"


@given(st.text(max_size=60))
def test_any_text_gives_tokens_that_cover_it_or_an_error(text: str) -> None:
    try:
        tokens = tokenize(text)
    except Error:
        return
    ends = [token.end for token in tokens]
    assert ends == sorted(ends)
    assert all(0 <= token.start <= token.end <= len(text) for token in tokens)


@given(st.text(alphabet="abcXYZ\"'()[],.;:+-*/<>=12 $_\n", max_size=60))
def test_rendered_tokens_read_as_the_same_tokens(text: str) -> None:
    try:
        tokens = tokenize(text)[:-1]
        again = tokenize(render_tokens(tokens))[:-1]
    except Error:
        return
    assert [(t.kind, t.text) for t in again] == [(t.kind, t.text) for t in tokens]
