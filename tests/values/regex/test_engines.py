"""Three engines, one meaning: PostgreSQL's."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from belvedere import interrupts
from belvedere.errors import Error
from belvedere.plan.functions.text import like, regex
from belvedere.values.regex.match import compile_regex
from tests.oracle.postgres import Postgres, Value
from tests.values.regex import generate

CASES = 400
ENGINES = ("re", "re2", "sets")
CALLS: dict[str, Callable[[str, str], Any]] = {
    "{text} ~ {pattern}": regex.matches,
    "regexp_instr({text}, {pattern})": regex.regexp_instr,
    "regexp_instr({text}, {pattern}, 1, 1, 1)": lambda t, p: regex.regexp_instr(t, p, 1, 1, 1),
    "regexp_count({text}, {pattern})": regex.regexp_count,
    "regexp_replace({text}, {pattern}, E'<\\\\&>', 'g')": (
        lambda t, p: regex.regexp_replace_flags(t, p, r"<\&>", "g")
    ),
    "(regexp_match({text}, {pattern}))[1]": (lambda t, p: (regex.regexp_match(t, p) or [None])[0]),
}


def use_engine(pattern: str, engine: str) -> None:
    """Have the (cached) pattern matched by this engine, whatever the text."""
    compile_regex.cache_clear()
    compiled = compile_regex(pattern)
    if engine != "re":
        compiled.length_max, compiled._prefix = -1, ""
    if engine == "sets":
        compiled._re2_text = None


def call(function: Callable[[str, str], Any], text: str, pattern: str, engine: str) -> str:
    try:
        use_engine(pattern, engine)
        found = function(text, pattern)
    except Error as error:
        return error.sqlstate
    return show(found)


def show(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return "NULL" if value is None else str(value)


def show_theirs(value: Value) -> str:
    return value.sqlstate or ("NULL" if value.text is None else value.text)


def quote(text: str) -> str:
    return "E'" + text.replace("\\", "\\\\").replace("'", "\\'").replace("\n", "\\n") + "'"


def test_regular_expressions_mean_what_they_mean_to_postgres_in_every_engine(
    postgres: Postgres, rng: random.Random
) -> None:
    cases = [(generate.make_pattern(rng), generate.make_text(rng)) for _ in range(CASES)]
    asked = [
        form.format(text=quote(text), pattern=quote(pattern))
        for pattern, text in cases
        for form in CALLS
    ]
    answers = map(show_theirs, postgres.evaluate(asked))
    answered = dict.fromkeys(ENGINES, 0)
    for pattern, text in cases:
        for form, function in CALLS.items():
            theirs = next(answers)
            for engine in ENGINES:
                ours = call(function, text, pattern, engine)
                answered[engine] += ours != "0A000"
                assert ours in (theirs, "0A000"), (form, pattern, text, engine)
    assert min(answered.values()) > CASES * len(CALLS) / 2


def test_like_means_what_it_means_to_postgres(postgres: Postgres, rng: random.Random) -> None:
    cases = [
        (generate.make_like_text(rng), generate.make_like_pattern(rng)) for _ in range(4 * CASES)
    ]
    answers = postgres.evaluate([f"{quote(text)} LIKE {quote(one)}" for text, one in cases])
    for (text, pattern), answer in zip(cases, answers, strict=True):
        try:
            ours = show(like.like(text, pattern))
        except Error as error:
            ours = error.sqlstate
        assert ours == show_theirs(answer), (text, pattern)
        segments = like._split_segments(pattern)
        if segments is not None:
            assert show(like._match_long_segments(text, segments)) == ours, (text, pattern)
            if len(segments) > 1:
                find = like._long_text_matcher(segments, list(map(like._segment_text, segments)))
                assert show(find(text)) == ours, (text, pattern)


HARD_LIKES = (
    ("a" * 100, "%a%a%a%a%a%a%b"),
    ("a" * 2_000, "%a%_a%a_%a%_%a%" + "a%" * 50 + "b"),
    ("a" * 100_000, "%" + "a" * 50_000 + "b%"),
    ("a" * 20_000, "%" + "_a" * 5_000 + "b%"),
    ("a" * 2_000, "%a" * 900 + "\\"),
)


@pytest.mark.parametrize(("text", "pattern"), HARD_LIKES)
def test_like_does_not_freeze(text: str, pattern: str) -> None:
    """Exponential matching would not end."""
    if pattern.endswith("\\"):
        with pytest.raises(Error) as caught:
            like.like(text, pattern)
        assert caught.value.sqlstate == "22025"
    else:
        assert not like.like(text, pattern)
        assert like.like(text + "b", pattern)


HARD_PATTERNS = (
    "^(a+)+$b",
    "(a*)*b",
    "(a|a)*b",
    "(a|aa)+$b",
    "a.*a.*a.*a.*a.*b",
    "(?:a?){30}a{30}b",
    r"(?=(a+)+b)a",
    r"(\m(a+)+)+b",
    r"(?<!(a+)+b)(a+)+b",
    "(?:(?:a{1,20}){1,20})b",
    r"(.*)(.*)(.*)(.*)[^a]",
)


@pytest.mark.parametrize("pattern", HARD_PATTERNS)
@pytest.mark.parametrize("length", [40, 3_000])
def test_regular_expressions_do_not_freeze(pattern: str, length: int) -> None:
    text = "a" * length
    assert not regex.matches(text, pattern)
    assert regex.regexp_replace_flags(text, pattern, "", "g") == text
    assert regex.regexp_count(text, pattern) == 0


def test_a_back_reference_over_a_long_text_is_refused_by_name() -> None:
    assert regex.matches("ab" * 30, r"(a+)(b+)\1\2")
    with pytest.raises(Error, match="back-reference") as caught:
        regex.matches("a" * 1_000_000, r"(a+)(a+)b\1\2")
    assert caught.value.sqlstate == "0A000"


def test_ordinary_patterns_stay_with_re() -> None:
    """Which is the fastest for short texts: the bound of its steps must not be too careful."""
    for pattern, length in (
        ("foo", 1_000_000),
        ("^abc.*def$", 4_000),
        (r"^[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}$", 200),
        (r"^\d{4}-\d{2}-\d{2}$", 1_000_000),
        (r"(\d+,)*\d+", 1_000),
        (r"([a-z]+\.)+com", 1_000),
        ("(foo|bar|baz)+", 1_000),
        (r"\mword\M", 100_000),
    ):
        assert compile_regex(pattern).length_max >= length, pattern


def test_matching_by_sets_ends_when_the_statement_is_cancelled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Stopped(Exception):
        pass

    def stop() -> None:
        raise Stopped

    with monkeypatch.context() as patch:
        patch.setattr(interrupts.running, "check", stop)
        with pytest.raises(Stopped):
            regex.matches("a" * 5_000, r"(?=(a+)+b)a")
    assert not regex.matches("a" * 5_000, r"(?=(a+)+b)a")
