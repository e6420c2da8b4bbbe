"""Compiled regular expressions, and which engine matches a text.

Three engines give the same answers:

- `re`, where an upper bound of its steps (`work`) is small for the pattern and the length of the
  text: nearly always, and then it is the fastest;
- RE2, in linear time and without the interpreter lock, for the rest;
- sets of positions, for what RE2 cannot express: lookaround, ends of words, shortest matches.

PostgreSQL takes the longest match at the leftmost position, or the shortest when the expression is
non-greedy; `re` takes the first that it finds. Whether there is a match is the same in both. Which
extent it has is asked of RE2 (in its longest-match mode) or of the sets of positions when several
repetitions or alternatives leave a choice. Captures inside a match are those of `re`. Expressions
that mix greedy and non-greedy, and captures beside alternatives of several lengths, are refused.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from typing import Any

from belvedere.errors import Unsupported
from belvedere.values.failures import bad_argument
from belvedere.values.regex.parse import RegexParser, invalid_regex
from belvedere.values.regex.position_sets import PositionSets
from belvedere.values.regex.render import render_python, render_re2
from belvedere.values.regex.tree import (
    Alternation,
    Assertion,
    BackReference,
    Characters,
    Concatenation,
    Group,
    Look,
    Node,
    Repeat,
    walk_tree,
)
from belvedere.values.regex.work import count_states, estimate_work, find_literal_prefix

STATES_MAX = 100_000
_HEAD_MAX = 1_000
_ENDS_MAX = 16
"""How many other ends of a match `re` is asked about, before another engine is."""


class SpanMatch:
    """A match as its extents in a text: of the whole, and of what its groups captured."""

    __slots__ = ("_spans", "_text")

    def __init__(self, text: str, spans: list[tuple[int, int]]) -> None:
        self._text = text
        self._spans = spans

    def span(self, group: int = 0) -> tuple[int, int]:
        return self._spans[group]

    def start(self, group: int = 0) -> int:
        return self._spans[group][0]

    def end(self, group: int = 0) -> int:
        return self._spans[group][1]

    def __getitem__(self, group: int) -> str | None:
        start, end = self._spans[group]
        return None if start < 0 else self._text[start:end]

    def groups(self) -> tuple[str | None, ...]:
        return tuple([self[group] for group in range(1, len(self._spans))])


Match = re.Match[str] | SpanMatch


class Regex:
    """A compiled pattern. `length_max` is how long texts may be that `re` searches; with an
    `open_extent` it may find another extent than PostgreSQL at the same position."""

    __slots__ = (
        "_holds_in_head",
        "_longest",
        "_prefix",
        "_re2_text",
        "_work",
        "alternates",
        "compiled",
        "greedy",
        "groups",
        "lazy",
        "length_max",
        "open_extent",
        "tree",
    )

    def __init__(self, tree: Node, groups: int, case_flag: int) -> None:
        self.tree = tree
        self.groups = groups
        by_sets = any(map(_is_variable_look_behind, walk_tree(tree)))  # which `re` does not take
        text = "" if by_sets else render_python(tree)
        try:
            self.compiled = re.compile(text, case_flag | re.ASCII | re.DOTALL)
        except (re.error, OverflowError) as error:
            raise invalid_regex(str(error)) from None
        repeats = [one for one in walk_tree(tree) if isinstance(one, Repeat)]
        self.alternates = any(isinstance(one, Alternation) for one in walk_tree(tree))
        self.lazy = sum(one.lazy for one in repeats)
        self.greedy = sum(not one.lazy and one.low != one.high for one in repeats)
        self.open_extent = self.alternates or self.greedy + self.lazy > 1 or bool(self.lazy)
        self._work = estimate_work(tree)
        self.length_max = -1 if by_sets else self._work.find_length_max()
        self._prefix = "" if case_flag or by_sets else find_literal_prefix(tree)
        # Then a match in the head of a text is one in the text.
        self._holds_in_head = not by_sets and not any(map(_needs_following_text, walk_tree(tree)))
        self._re2_text = render_re2(tree)
        self._longest: Any = None

    def has_match(self, text: str) -> bool:
        """Whether a text of any length matches; `compile_text_test` is for short ones."""
        if len(text) <= self.length_max:
            return self.compiled.search(text) is not None
        head = min(self.length_max, _HEAD_MAX)
        if self._holds_in_head and self.compiled.search(text, 0, head) is not None:
            return True
        if self._has_few_starts(text):
            return self.compiled.search(text) is not None
        engine = self.load_re2()
        if engine is None:
            return PositionSets(self.tree, text).has_match()
        return engine.search(text.encode()) is not None

    def _has_few_starts(self, text: str) -> bool:
        """Whether a text is short enough for `re` because few of its positions begin a match."""
        if not self._prefix:
            return False
        return self._work.allows_search(text.count(self._prefix), len(text))

    def load_re2(self) -> Any:
        """The pattern in RE2, in its longest-match mode; None when RE2 cannot express it."""
        if self._longest is None and self._re2_text is not None:
            self._longest = _compile_re2(self._re2_text, longest=True)
            if self._longest is None:
                self._re2_text = None
        return self._longest

    def load_position_sets(self, text: str) -> PositionSets:
        return PositionSets(self.tree, text)

    def capture_groups(self, text: str, start: int, end: int) -> Match:
        """The match of this extent, with what its groups captured."""
        if not self.groups:
            return SpanMatch(text, [(start, end)])
        found: Match | None
        if end - start <= self.length_max:
            found = self.compiled.fullmatch(text, start, end)
        elif self._re2_text is not None:
            found = _capture_with_re2(self._re2_text, text, start, end)
        else:
            raise Unsupported("captures of this regular expression in so long a match")
        if found is None:
            raise Unsupported("the extent of this regular expression's match is not supported")
        return found

    def refuse_unequal_alternatives(self) -> None:
        """Refuse captures whose extent depends on which alternative is tried first."""
        if self.alternates and self.groups and not _has_equal_widths(self.tree):
            raise Unsupported("captures beside alternatives of several lengths are not supported")


class Search:
    """Matches of a regular expression in one text, one after the other."""

    __slots__ = ("_encoded", "_regex", "_sets", "_text")

    def __init__(self, regex: Regex, text: str) -> None:
        self._regex = regex
        self._text = text
        self._encoded: EncodedText | None = None
        self._sets: PositionSets | None = None

    def find_from(self, text: str, start: int = 0) -> Match | None:
        """The match PostgreSQL takes at or after `start` in the text of this search."""
        regex = self._regex
        if len(text) <= regex.length_max:
            match = regex.compiled.search(text, start)
            if match is None or not regex.open_extent:
                return match
            if not regex.lazy and len(text) - match.end() <= _ENDS_MAX:
                return self._find_longer(match)
        if regex.lazy and (regex.greedy or regex.alternates):
            if not regex.has_match(text):
                return None
            raise Unsupported(
                "regular expressions that mix greedy and non-greedy are not supported here"
            )
        span = self._find_span(start)
        return None if span is None else regex.capture_groups(text, *span)

    def _find_longer(self, match: re.Match[str]) -> Match:
        for end in range(len(self._text), match.end(), -1):
            other = self._regex.compiled.fullmatch(self._text, match.start(), end)
            if other is not None:
                if end < len(self._text):  # what is asserted there may only seem to hold
                    span = self._find_span(match.start())
                    assert span is not None
                    return self._regex.capture_groups(self._text, *span)
                return other
        return match

    def _find_span(self, start: int) -> tuple[int, int] | None:
        regex = self._regex
        engine = None if regex.lazy else regex.load_re2()
        if engine is None:
            if self._sets is None:
                self._sets = regex.load_position_sets(self._text)
            return self._sets.find_span(start, shortest=bool(regex.lazy))
        if self._encoded is None:
            self._encoded = EncodedText(self._text)
        return self._encoded.find_span(engine, start)


class EncodedText:
    """A text as UTF-8. Matches go from left to right, so that offsets are counted from the one
    before."""

    __slots__ = ("_at", "_bytes_at", "_data", "_text")

    def __init__(self, text: str) -> None:
        self._text = text
        self._data = text.encode()
        self._at = self._bytes_at = 0

    def find_span(self, engine: Any, start: int) -> tuple[int, int] | None:
        if len(self._data) == len(self._text):
            found = engine.search(self._data, start)
            return None if found is None else found.span()
        found = engine.search(self._data, self._to_byte(start))
        if found is None:
            return None
        return self._to_character(found.start()), self._to_character(found.end())

    def _to_byte(self, character: int) -> int:
        low, high = sorted((self._at, character))
        size = len(self._text[low:high].encode())
        self._bytes_at += size if character >= self._at else -size
        self._at = character
        return self._bytes_at

    def _to_character(self, byte: int) -> int:
        low, high = sorted((self._bytes_at, byte))
        size = len(self._data[low:high].decode())
        self._at += size if byte >= self._bytes_at else -size
        self._bytes_at = byte
        return self._at


def _compile_re2(text: str, *, longest: bool) -> Any:
    import re2  # heavy

    options = re2.Options()
    options.longest_match = longest
    options.dot_nl = True
    options.log_errors = False
    try:
        return re2.compile(text.encode(), options)
    except re2.error:
        return None  # larger than RE2 takes


@functools.lru_cache(maxsize=64)
def _compile_first_match(text: str) -> Any:
    return _compile_re2(text, longest=False)


def _capture_with_re2(pattern: str, text: str, start: int, end: int) -> SpanMatch | None:
    """RE2's other mode takes the same choices as `re`."""
    engine = _compile_first_match(pattern)
    data = text[start:end].encode()
    found = None if engine is None else engine.fullmatch(data)
    if found is None:
        return None
    spans = []
    for group in range(engine.groups + 1):
        low, high = found.span(group)
        if low >= 0:
            low, high = (start + len(data[:one].decode()) for one in (low, high))
        spans.append((low, high))
    return SpanMatch(text, spans)


def _needs_following_text(node: Node) -> bool:
    return isinstance(node, Look | Assertion) and not (
        isinstance(node, Assertion) and node.name in ("begin", "line_begin")
    )


def _is_variable_look_behind(node: Node) -> bool:
    return isinstance(node, Look) and not node.ahead and find_width(node.inner) is None


def find_width(node: Node) -> int | None:
    """The number of characters that every match has; None when they differ."""
    match node:
        case Characters():
            return 1
        case Group(inner):
            return find_width(inner)
        case Repeat(inner, low, high):
            width = find_width(inner)
            return width * low if width is not None and low == high else None
        case Concatenation(items):
            widths = list(map(find_width, items))
            known = [one for one in widths if one is not None]
            return sum(known) if len(known) == len(widths) else None
        case Alternation(items):
            each = set(map(find_width, items))
            return each.pop() if len(each) == 1 else None
        case BackReference():
            return None
        case _:
            return 0


def _has_equal_widths(tree: Node) -> bool:
    """Whether every alternation is between plain characters: no choice of length."""
    widths = [
        {_plain_width(item) for item in one.items}
        for one in walk_tree(tree)
        if isinstance(one, Alternation)
    ]
    return not isinstance(tree, Alternation) and all(
        len(one) == 1 and None not in one for one in widths
    )


def _plain_width(node: Node) -> int | None:
    if isinstance(node, Characters):
        return 1
    if isinstance(node, Concatenation) and all(isinstance(one, Characters) for one in node.items):
        return len(node.items)
    return None


def parse_flags(flags: str) -> tuple[str, bool]:
    """Check regexp flags; return those of the pattern and whether `g` was among them."""
    for flag in flags:
        if flag not in "gicnmspwxqet":
            raise bad_argument("invalid regular expression option")
    if set(flags) & set("pwet"):
        raise Unsupported("this regular expression option is not supported", flags=flags)
    return flags.replace("g", ""), "g" in flags


@functools.lru_cache(maxsize=1024)
def compile_regex(pattern: str, flags: str = "") -> Regex:
    """The pattern compiled; `flags` as the regexp functions take them, without `g`."""
    if len(pattern) > STATES_MAX:
        raise invalid_regex("too complex")
    if pattern.startswith("***"):
        raise Unsupported("regular expression directors (***) are not supported")
    embedded = re.match(r"\(\?([a-z]+)\)", pattern)
    if embedded is not None:
        flags += parse_flags(embedded[1])[0]
        pattern = pattern[embedded.end() :]
    # The last of i and c counts.
    folded = flags.rfind("i") > flags.rfind("c")
    parser = RegexParser(
        pattern, lines="n" in flags or "m" in flags, extended="x" in flags, folded=folded
    )
    try:
        tree = parser.parse_literal() if "q" in flags else parser.parse_pattern()
        if count_states(tree) > STATES_MAX:
            raise invalid_regex("too complex")
        return Regex(tree, parser.groups, re.IGNORECASE if folded else 0)
    except RecursionError:
        raise invalid_regex("too complex") from None


def find_between(text: str, before: str, between: str, after: str) -> tuple[int, int] | None:
    """The extent of `between` in a text that is matched by the three patterns one after the other:
    the first as short as possible, then the second as long as possible."""
    sets = compile_regex(between).load_position_sets(text)
    return sets.find_between(compile_regex(before).tree, compile_regex(after).tree)


TextTest = tuple[Callable[[str], object], int, Callable[[str], bool]]
"""How to test texts against a pattern: a search, the length up to which to use it, and a test of
longer ones."""


@functools.lru_cache(maxsize=1024)
def compile_text_test(pattern: str, flags: str = "") -> TextTest:
    regex = compile_regex(pattern, flags)
    return regex.compiled.search, regex.length_max, regex.has_match


def iterate_matches(regex: Regex, text: str, start: int = 0) -> Iterator[Match]:
    """Every match from left to right, empty ones directly after another included."""
    position = start
    unambiguous = len(text) <= regex.length_max and not regex.open_extent
    find = regex.compiled.search if unambiguous else Search(regex, text).find_from
    while position <= len(text):
        match = find(text, position)
        if match is None:
            return
        yield match
        position = match.end() + (match.end() == match.start())


def find_match(regex: Regex, text: str, start: int = 0) -> Match | None:
    """The match PostgreSQL takes at or after `start`."""
    if len(text) <= regex.length_max and not regex.open_extent:
        return regex.compiled.search(text, start)
    return Search(regex, text).find_from(text, start)
