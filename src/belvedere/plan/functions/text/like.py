"""LIKE and ILIKE, in time that grows with text and pattern only. A pattern is compiled once and
cached.

The escape character is the backslash; `like_escape` rewrites a pattern with another one. ILIKE
folds ASCII letters only, as the C collation does.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable

from belvedere.interrupts import check_statement
from belvedere.plan.functions.core.function import UDF, Function, scalar
from belvedere.plan.functions.text.strings import LOWER as _LOWER
from belvedere.plan.functions.text.strings import UPPER as _UPPER
from belvedere.plan.functions.text.strings import lower
from belvedere.values.failures import bad_argument

Match = Callable[[str], bool]


_STEPS_MAX = 10_000_000


@functools.lru_cache(maxsize=1024)
def like_matcher(pattern: str) -> Match:
    """A test of a text against a LIKE pattern."""
    segments = _split_segments(pattern)
    if segments is None:
        return _dangling_matcher(pattern)
    return _simple_matcher(pattern) or _segments_matcher(segments)


Segment = tuple[str | None, ...]
"""Characters between two %; None is any one character."""


def _split_segments(pattern: str) -> list[Segment] | None:
    """The pattern between its %, runs of which mean one; None when it ends in an escape."""
    segments: list[list[str | None]] = [[]]
    position = 0
    while position < len(pattern):
        character = pattern[position]
        if character == "\\":
            position += 1
            if position == len(pattern):
                return None
            segments[-1].append(pattern[position])
        elif character == "%":
            if segments[-1] or len(segments) == 1:
                segments.append([])
        else:
            segments[-1].append(None if character == "_" else character)
        position += 1
    return list(map(tuple, segments))


def _segments_matcher(segments: list[Segment]) -> Match:
    texts = [_segment_text(one) for one in segments]
    backtracking = re.compile(".*".join(texts), re.DOTALL).fullmatch
    if len(segments) == 1:
        return lambda text: backtracking(text) is not None
    choices = len(segments) - 1 - (not segments[-1])  # the last of .* takes what is left
    length_max = int(_STEPS_MAX ** (1 / choices)) if choices else _STEPS_MAX
    match_long = _long_text_matcher(segments, texts)

    def match_segments(text: str) -> bool:
        return backtracking(text) is not None if len(text) <= length_max else match_long(text)

    return match_segments


def _long_text_matcher(segments: list[Segment], texts: list[str]) -> Match:
    """For texts that are too long to look for every way in which the segments may lie in them: the
    first place of each is as good as any later one."""
    if all(None not in one for one in segments):
        return _texts_matcher(["".join(one or "" for one in each) for each in segments])
    begins, ends = (re.compile(one, re.DOTALL).match for one in (texts[0], texts[-1]))
    finders = [_segment_finder(one) for one in segments[1:-1]]
    longest = max(map(len, segments))
    size, rest = len(segments[0]), len(segments[-1])

    def match_long(text: str) -> bool:
        if len(text) * longest > _STEPS_MAX:
            return _match_long_segments(text, segments)
        position, end = size, len(text) - rest
        if end < position or begins(text) is None or ends(text, end) is None:
            return False
        for find in finders:
            position = find(text, position, end)
            if position < 0:
                return False
        return True

    return match_long


def _segment_finder(segment: Segment) -> Callable[[str, int, int], int]:
    """Finds where the first place of a segment ends; -1 without one. What has no any-character at
    its beginning is found fast, so those are counted instead."""
    before = next((i for i, one in enumerate(segment) if one is not None), len(segment))
    after = next((i for i, one in enumerate(reversed(segment[before:])) if one is not None), 0)
    core = segment[before : len(segment) - after]
    search = re.compile(_segment_text(core), re.DOTALL).search
    pattern = "" if None in core else "".join(map(str, core))
    length = len(pattern)

    def find_text(text: str, start: int, end: int) -> int:
        found = text.find(pattern, start + before, max(end - after, 0))
        return found if found < 0 else found + length + after

    def find_segment(text: str, start: int, end: int) -> int:
        found = search(text, start + before, max(end - after, 0))
        return -1 if found is None else found.end() + after

    def skip_any(text: str, start: int, end: int) -> int:
        return start + before if start + before <= end else -1

    if not core:
        return skip_any
    return find_text if pattern else find_segment


def _texts_matcher(texts: list[str]) -> Match:
    """For segments without any-character: each is searched for behind the one before."""
    first, *middle, last = texts
    sizes = [(one, len(one)) for one in middle]
    ends = len(first) + len(last)

    def match_texts(text: str) -> bool:
        end = len(text) - len(last)
        if not text.startswith(first) or not text.endswith(last) or len(text) < ends:
            return False
        position = len(first)
        for one, size in sizes:
            position = text.find(one, position, end)
            if position < 0:
                return False
            position += size
        return True

    return match_texts


def _segment_text(segment: Segment) -> str:
    return "".join("." if one is None else re.escape(one) for one in segment)


def _match_long_segments(text: str, segments: list[Segment]) -> bool:
    """The same for a long text and long segments, where comparing each place of the text with the
    whole segment would take too long."""
    first, last = segments[0], segments[-1]
    if len(segments) == 1:
        return len(text) == len(first) and _fits_segment(text, 0, first)
    end = len(text) - len(last)
    position = len(first)
    if end < position or not _fits_segment(text, 0, first) or not _fits_segment(text, end, last):
        return False
    for segment in segments[1:-1]:
        position = _find_segment(text, segment, position, end)
        if position < 0:
            return False
        position += len(segment)
    return True


def _fits_segment(text: str, at: int, segment: Segment) -> bool:
    return all(one is None or one == text[at + i] for i, one in enumerate(segment))


def _find_segment(text: str, segment: Segment, start: int, end: int) -> int:
    """The first place of a segment; -1 without one. Bit i of `state` says that the last i + 1
    characters are the first of the segment."""
    if None not in segment:
        return text.find("".join(one or "" for one in segment), start, end)
    anywhere = sum(1 << i for i, one in enumerate(segment) if one is None)
    known = {one: anywhere for one in segment if one is not None}
    for i, one in enumerate(segment):
        if one is not None:
            known[one] |= 1 << i
    state, full = 0, 1 << (len(segment) - 1)
    for at in range(start, end):
        if not at & 0xFFF:
            check_statement()
        state = (state << 1 | 1) & known.get(text[at], anywhere)
        if state & full:
            return at - len(segment) + 1
    return -1


def _simple_matcher(pattern: str) -> Match | None:
    """Equality, prefix, suffix or containment, when the pattern is no more than that."""
    body = pattern.strip("%")
    if not body or any(special in body for special in "%_\\"):
        return None
    before, after = pattern.startswith("%"), pattern.endswith("%")
    if before and after:
        return lambda text: body in text
    if before:
        return lambda text: text.endswith(body)
    if after:
        return lambda text: text.startswith(body)
    return lambda text: text == body


def _dangling_matcher(pattern: str) -> Match:
    """For a pattern that ends in an escape character: an error when matching reaches it with text
    left, that is when the pattern before it matches a beginning of the text."""
    reaches = like_matcher(pattern[:-1] + "_%")

    def match_dangling(text: str) -> bool:
        if reaches(text):
            raise bad_argument("like pattern must not end with escape character", "22025")
        return False

    return match_dangling


def like(text: str, pattern: str) -> bool:
    return like_matcher(pattern)(text)


def not_like(text: str, pattern: str) -> bool:
    return not like_matcher(pattern)(text)


def ilike(text: str, pattern: str) -> bool:
    return like_matcher(lower(pattern))(lower(text))


def not_ilike(text: str, pattern: str) -> bool:
    return not like_matcher(lower(pattern))(lower(text))


def like_escape(pattern: str, escape: str) -> str:
    """The pattern with `escape` in place of the backslash rewritten to use the backslash."""
    if not escape:
        return pattern.replace("\\", "\\\\")
    if len(escape) > 1:
        raise bad_argument("invalid escape string", "22025")
    if escape == "\\":
        return pattern
    out: list[str] = []
    escaped = False
    for character in pattern:
        if character == escape and not escaped:
            out.append("\\")
            escaped = True
        elif character == "\\":
            out.append("\\\\" if not escaped else "\\")
            escaped = False
        else:
            out.append(character)
            escaped = False
    return "".join(out)


def _decode_latin(value: bytes) -> str:
    return value.decode("latin-1")


def like_escape_bytes(pattern: bytes, escape: bytes) -> bytes:
    return like_escape(_decode_latin(pattern), _decode_latin(escape)).encode("latin-1")


def like_bytes(value: bytes, pattern: bytes) -> bool:
    return like_matcher(_decode_latin(pattern))(_decode_latin(value))


def not_like_bytes(value: bytes, pattern: bytes) -> bool:
    return not like_matcher(_decode_latin(pattern))(_decode_latin(value))


def _native_sql(left: str, name: str, operator: str, fold: bool) -> str:
    """DuckDB's LIKE for patterns without escapes: the two differ on a trailing escape. Its time is
    the product of both lengths, which is too much for long ones."""
    symbol = "".join(f"x{ord(character):x}" for character in name)
    value, pattern = (
        f"translate({side}, '{_UPPER}', '{_LOWER}')" if fold else side for side in ("_0", "_1")
    )
    udf = f"belvedere_{symbol}_{left}_text(_0, _1)"
    other = f"contains(_1, '\\') OR CAST(strlen(_0) AS BIGINT) * strlen(_1) > {_STEPS_MAX}"
    return f"CASE WHEN {other} THEN {udf} ELSE {value} {operator} {pattern} END"


def _like_operators(left: str) -> list[Function]:
    forms = (
        ("~~", like, "LIKE", False),
        ("!~~", not_like, "NOT LIKE", False),
        ("~~*", ilike, "LIKE", True),
        ("!~~*", not_ilike, "NOT LIKE", True),
    )
    return [
        scalar(f"{name}({left},text) bool", form, _native_sql(left, name, operator, fold), udf=True)
        for name, form, operator, fold in forms
    ]


FUNCTIONS: tuple[Function, ...] = (
    *_like_operators("text"),
    *_like_operators("bpchar"),
    scalar("like(text,text) bool", like, UDF),
    scalar("notlike(text,text) bool", not_like, UDF),
    scalar("like_escape(text,text) text", like_escape, UDF),
    scalar("like(bytea,bytea) bool", like_bytes, UDF),
    scalar("notlike(bytea,bytea) bool", not_like_bytes, UDF),
    scalar("like_escape(bytea,bytea) bytea", like_escape_bytes, UDF),
    scalar("~~(bytea,bytea) bool", like_bytes, UDF),
    scalar("!~~(bytea,bytea) bool", not_like_bytes, UDF),
)
