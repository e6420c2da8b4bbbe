from __future__ import annotations

import csv
import io
import random

import pytest

from belvedere.errors import InvalidInput, Unsupported
from belvedere.session.copy import text_format
from belvedere.session.copy.options import TextFormat, parse_copy_options

CSV = parse_copy_options("csv", "from", {}, ["a"])
TEXT = parse_copy_options("text", "from", {}, ["a"])


def records(text: str, style: TextFormat = CSV) -> list[text_format.Record]:
    lines = io.StringIO(text, newline="")
    return [record for _, record in text_format.read_records(lines, style)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a,b\n", [["a", "b"]]),
        ('a,""\n,b\r\n', [["a", ""], [None, "b"]]),
        ('"x ""y"" z","1,2"\n', [['x "y" z', "1,2"]]),
        ('"two\nlines",3\nn,4\n', [["two\nlines", "3"], ["n", "4"]]),
        ("a,b", [["a", "b"]]),
        ("\\.\nrest,x\n", []),
    ],
)
def test_csv_tells_null_from_empty(text: str, expected: list[text_format.Record]) -> None:
    assert records(text) == expected


def test_the_header_is_left_out() -> None:
    assert records("h,i\n1,2\n", parse_copy_options("csv", "from", {"header": "true"}, ["a"])) == [
        ["1", "2"]
    ]


def test_an_open_quote_says_where_it_began() -> None:
    with pytest.raises(InvalidInput) as caught:
        records('a,b\n"c,d\n')
    assert (caught.value.sqlstate, caught.value.facts["line"]) == ("22P04", 2)


def test_text_has_escapes_and_null() -> None:
    assert records("a\\tb\t\\N\tc\\\\d\n", TEXT) == [["a\tb", None, "c\\d"]]


def test_unknown_options_are_named() -> None:
    with pytest.raises(Unsupported) as caught:
        parse_copy_options("csv", "from", {"force_null": "a"}, ["a"])
    assert "force_null" in str(caught.value)


@pytest.mark.parametrize("style", [CSV, TEXT], ids=["csv", "text"])
def test_what_is_written_is_read_back(style: TextFormat, rng: random.Random) -> None:
    signs = 'ab,"\n\r\t\\N.\x08 ü'
    written: list[text_format.Record] = [
        [
            None if rng.random() < 0.2 else "".join(rng.choices(signs, k=rng.randrange(5)))
            for _ in range(3)
        ]
        for _ in range(300)
    ]
    out = io.BytesIO()
    assert text_format.write_records(out, style, ["x", "y", "z"], written) == 300
    assert records(out.getvalue().decode(), style) == written


def test_csv_is_read_by_others(rng: random.Random) -> None:
    rows = [["a,b", 'say "x"', "line\nbreak"], ["1", "2", "3"]]
    out = io.BytesIO()
    text_format.write_records(out, CSV, ["x", "y", "z"], rows)
    assert list(csv.reader(io.StringIO(out.getvalue().decode(), newline=""))) == rows


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a\\tb\tc\n", [["a\tb", "c"]]),
        ("a\\\tb\tc\n", [["a\tb", "c"]]),
        ("a\\\\\tb\n", [["a\\", "b"]]),
        ("\\101\\x42\\x4a\\q\n", [["ABJq"]]),
        ("\\303\\251 \\xc3\\xa9 é\n", [["é é é"]]),
        ("\\N\t\\\\N\n", [[None, "\\N"]]),
    ],
)
def test_escapes_of_the_text_format(text: str, expected: list[text_format.Record]) -> None:
    assert records(text, TEXT) == expected


@pytest.mark.parametrize("text", ["a\0\n", "\\000\n", "\\x00\n", "\\xff\n"])
def test_bytes_that_are_no_text_are_refused(text: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        records(text, TEXT)
    assert caught.value.sqlstate == "22021"


@pytest.mark.parametrize("delimiter", ["|", ";", "\t"])
def test_a_delimiter_in_a_value_comes_back(delimiter: str) -> None:
    style = parse_copy_options("text", "from", {"delimiter": delimiter}, ["a"])
    out = io.BytesIO()
    values: text_format.Record = [f"a{delimiter}b", "\\", None, ""]
    text_format.write_records(out, style, [], [values])
    assert records(out.getvalue().decode(), style) == [values]
