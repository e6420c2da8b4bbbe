"""Matching by sets of positions, for what RE2 cannot express.

A set of positions of the text is a number, bit i for the position before character i. From the set
of positions where matches of a part may begin follows the set where they may end, and the other way
round; both with a few operations on numbers of as many bits as the text has characters. A repeated
character is an addition: its carry runs through the characters that match. So every part of the
pattern is evaluated once, repetitions of more than a character until nothing new comes.

Back-references are not sets of positions and are refused. Everything is a loop in Python, which
other threads and Ctrl-C interrupt; `check_statement` ends it when the statement is cancelled.
"""

from __future__ import annotations

from belvedere.errors import Unsupported
from belvedere.interrupts import check_statement
from belvedere.values.regex.parse import WORD_CHARACTERS
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
)


class PositionSets:
    """The matches of one pattern in one text."""

    def __init__(self, tree: Node, text: str) -> None:
        self._tree = tree
        self._text = text
        self._all = (1 << (len(text) + 1)) - 1
        self._masks: dict[Node, int] = {}
        self._beginnings: int | None = None

    def has_match(self) -> bool:
        return self._find_ends(self._tree, self._all) != 0

    def find_span(self, start: int, *, shortest: bool) -> tuple[int, int] | None:
        """The leftmost match at or after `start`, and the longest or shortest there."""
        if self._beginnings is None:
            self._beginnings = self._find_starts(self._tree, self._all)
        left = self._beginnings >> start
        if not left:
            return None
        begin = start + _lowest_bit(left)
        ends = self._find_ends(self._tree, 1 << begin)
        return begin, (_lowest_bit(ends) if shortest else ends.bit_length() - 1)

    def find_between(self, before: Node, after: Node) -> tuple[int, int] | None:
        """The extent of a match between one of `before` from the beginning of the text, as short
        as possible, and one of `after` to its end; as long as possible."""
        ends = self._find_starts(after, 1 << len(self._text))
        starts = self._find_starts(self._tree, ends) & self._find_ends(before, 1)
        if not starts:
            return None
        begin = _lowest_bit(starts)
        return begin, (self._find_ends(self._tree, 1 << begin) & ends).bit_length() - 1

    # -- from beginnings to ends, and back ----------------------------------------------------

    def _find_ends(self, node: Node, starts: int) -> int:
        match node:
            case Characters():
                return (starts & self._get_mask(node)) << 1
            case Concatenation(items):
                for item in items:
                    starts = self._find_ends(item, starts)
                return starts
            case Alternation(items):
                ends = 0
                for item in items:
                    ends |= self._find_ends(item, starts)
                return ends
            case Group(inner):
                return self._find_ends(inner, starts)
            case Repeat():
                return self._repeat_part(node, starts, forward=True)
            case _:
                return starts & self._get_mask(node)

    def _find_starts(self, node: Node, ends: int) -> int:
        match node:
            case Characters():
                return (ends >> 1) & self._get_mask(node)
            case Concatenation(items):
                for item in reversed(items):
                    ends = self._find_starts(item, ends)
                return ends
            case Alternation(items):
                starts = 0
                for item in items:
                    starts |= self._find_starts(item, ends)
                return starts
            case Group(inner):
                return self._find_starts(inner, ends)
            case Repeat():
                return self._repeat_part(node, ends, forward=False)
            case _:
                return ends & self._get_mask(node)

    def _repeat_part(self, node: Repeat, positions: int, *, forward: bool) -> int:
        step = self._find_ends if forward else self._find_starts
        for _ in range(node.low):
            check_statement()
            positions = step(node.inner, positions)
        if node.high is None:
            if forward and isinstance(node.inner, Characters):
                mask = self._get_mask(node.inner)
                return (((positions & mask) + mask) ^ mask) | positions
            return self._close_repetition(node.inner, positions, forward=forward)
        found = positions
        for _ in range(node.high - node.low):
            check_statement()
            positions = step(node.inner, positions)
            found |= positions
        return found

    def _close_repetition(self, inner: Node, positions: int, *, forward: bool) -> int:
        """The positions reached by any number of repetitions."""
        step = self._find_ends if forward else self._find_starts
        if isinstance(inner, Characters) and not forward:
            size = len(self._text) + 1
            mask = _reverse_bits(self._get_mask(inner) << 1, size)
            turned = _reverse_bits(positions, size)
            return _reverse_bits((((turned & mask) + mask) ^ mask) | turned, size) & self._all
        found = positions
        while positions:
            check_statement()
            positions = step(inner, positions) & ~found
            found |= positions
        return found

    # -- the positions of single nodes --------------------------------------------------------

    def _get_mask(self, node: Node) -> int:
        """The positions before a character of the set, or where an assertion holds."""
        found = self._masks.get(node)
        if found is None:
            found = self._masks[node] = self._build_mask(node) & self._all
        return found

    def _build_mask(self, node: Node) -> int:
        match node:
            case Characters():
                signs = {sign: "01"[node.contains(sign)] for sign in set(self._text)}
                check_statement()
                return int("0" + "".join([signs[sign] for sign in reversed(self._text)]), 2)
            case Look(inner, ahead, negative):
                found = (self._find_starts if ahead else self._find_ends)(inner, self._all)
                return ~found if negative else found
            case Assertion(name):
                return self._build_assertion_mask(name)
            case BackReference():
                raise Unsupported(
                    "a regular expression with a back-reference is too much work for this text",
                    hint="use a pattern without \\1, or shorter texts",
                )
            case _:
                raise AssertionError(node)

    def _build_assertion_mask(self, name: str) -> int:
        end = 1 << len(self._text)
        if name in ("begin", "end"):
            return 1 if name == "begin" else end
        if name in ("line_begin", "line_end"):
            newlines = self._get_mask(_NEWLINE)
            return 1 | newlines << 1 if name == "line_begin" else end | newlines
        word = self._get_mask(WORD_CHARACTERS)
        before = word << 1
        match name:
            case "word_begin":
                return word & ~before
            case "word_end":
                return before & ~word
            case "boundary":
                return word ^ before
            case _:
                return ~(word ^ before)


_NEWLINE = Characters((("\n", "\n"),))


def _lowest_bit(bits: int) -> int:
    return (bits & -bits).bit_length() - 1


def _reverse_bits(bits: int, size: int) -> int:
    return int(format(bits, f"0{size}b")[::-1][:size], 2)
