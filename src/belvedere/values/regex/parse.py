"""PostgreSQL's syntax of regular expressions (AREs) to a tree.

C locale: classes, `\\w` and word boundaries are ASCII. Invalid patterns are 2201B; collating
elements of several characters and directors (`***`) are refused.
"""

from __future__ import annotations

import re

from belvedere.errors import InvalidInput, Unsupported
from belvedere.values.regex.tree import (
    CHARACTER_MAX,
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

Ranges = tuple[tuple[str, str], ...]

DEPTH_MAX = 200
REPEATS_MAX = 255


def _split_pairs(text: str) -> Ranges:
    return tuple((text[i], text[i + 1]) for i in range(0, len(text), 2))


_CLASSES: dict[str, Ranges] = {
    "alpha": _split_pairs("azAZ"),
    "digit": _split_pairs("09"),
    "alnum": _split_pairs("azAZ09"),
    "upper": _split_pairs("AZ"),
    "lower": _split_pairs("az"),
    "space": _split_pairs("  \t\r"),
    "blank": _split_pairs("  \t\t"),
    "punct": _split_pairs("!/:@[`{~"),
    "xdigit": _split_pairs("09afAF"),
    "word": _split_pairs("azAZ09__"),
    "cntrl": _split_pairs("\0\x1f\x7f\x7f"),
    "graph": _split_pairs("!~"),
    "print": _split_pairs(" ~"),
    "ascii": _split_pairs("\0\x7f"),
}
_SHORT = {"d": _CLASSES["digit"], "s": _CLASSES["space"], "w": _CLASSES["word"]}
WORD_CHARACTERS = Characters(_CLASSES["word"])
_CONTROL = {
    "a": "\a",
    "b": "\b",
    "e": "\033",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "B": "\\",
}
_ASSERTIONS = {
    "A": "begin",
    "Z": "end",
    "m": "word_begin",
    "M": "word_end",
    "y": "boundary",
    "Y": "inside",
}
_LOOKAROUND = (("?=", True, False), ("?!", True, True), ("?<=", False, False), ("?<!", False, True))
_DIGITS = {
    "x": re.compile(r"[0-9a-fA-F]{1,8}"),
    "u": re.compile(r"[0-9a-fA-F]{4}"),
    "U": re.compile(r"[0-9a-fA-F]{8}"),
    "0": re.compile(r"[0-7]{0,2}"),
}
_BOUND = re.compile(r"\{(\d{1,3})(,(\d{0,3}))?\}")


def invalid_regex(reason: str) -> InvalidInput:
    return InvalidInput("invalid regular expression", sqlstate="2201B", reason=reason)


class RegexParser:
    """`lines`: newlines end lines (flag n); `extended`: white space and comments are skipped;
    `folded`: upper and lower case are equal."""

    def __init__(self, pattern: str, *, lines: bool, extended: bool, folded: bool) -> None:
        self.pattern, self.lines, self.extended, self.folded = pattern, lines, extended, folded
        self.position = 0
        self.groups = 0
        self._depth = 0
        self._lookaround_depth = 0
        self._quantifiable = False

    def parse_pattern(self) -> Node:
        tree = self._parse_alternation()
        if self.position < len(self.pattern):
            raise invalid_regex("parentheses () not balanced")
        return tree

    def parse_literal(self) -> Node:
        """The pattern as text without any special character."""
        return Concatenation(tuple(map(self._make_literal, self.pattern)))

    def _peek_character(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def _parse_alternation(self) -> Node:
        branches = [self._parse_sequence()]
        while self._peek_character() == "|":
            self.position += 1
            branches.append(self._parse_sequence())
        return branches[0] if len(branches) == 1 else Alternation(tuple(branches))

    def _parse_sequence(self) -> Node:
        items: list[Node] = []
        self._quantifiable = False
        while (character := self._peek_character()) and character not in "|)":
            if self.extended and (character.isspace() or character == "#"):
                self._skip_comment(character)
            elif character in "*+?" or (character == "{" and self._digit_follows()):
                self._parse_quantifier(items, character)
            else:
                self.position += 1
                self._quantifiable = True
                items.append(self._parse_atom(character))
        return items[0] if len(items) == 1 else Concatenation(tuple(items))

    def _skip_comment(self, character: str) -> None:
        if character == "#":
            end = self.pattern.find("\n", self.position)
            self.position = len(self.pattern) if end < 0 else end + 1
        else:
            self.position += 1

    def _digit_follows(self) -> bool:
        return self.pattern[self.position + 1 : self.position + 2].isdigit()

    def _parse_quantifier(self, items: list[Node], character: str) -> None:
        if not self._quantifiable:
            raise invalid_regex("quantifier operand invalid")
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(character, (0, 0))
        if character == "{":
            low, high = self._parse_bound()
        else:
            self.position += 1
        lazy = self._peek_character() == "?"
        self.position += lazy
        items[-1] = Repeat(items[-1], low, high, lazy)
        self._quantifiable = False

    def _parse_bound(self) -> tuple[int, int | None]:
        match = _BOUND.match(self.pattern, self.position)
        if match is None:
            raise invalid_regex("invalid repetition count")
        low = int(match[1])
        high = low if match[2] is None else int(match[3]) if match[3] else None
        if low > REPEATS_MAX or (high is not None and not low <= high <= REPEATS_MAX):
            raise invalid_regex("invalid repetition count")
        self.position = match.end()
        return low, high

    def _parse_atom(self, character: str) -> Node:
        match character:
            case "\\":
                return self._parse_escape()
            case "[":
                return self._parse_bracket()
            case "(":
                return self._parse_group()
            case ".":
                return Characters((("\n", "\n"),) if self.lines else (), negated=True)
            case "^":
                return self._make_assertion("line_begin" if self.lines else "begin")
            case "$":
                return self._make_assertion("line_end" if self.lines else "end")
            case _:
                return self._make_literal(character)

    def _make_assertion(self, name: str) -> Assertion:
        self._quantifiable = False
        return Assertion(name)

    def _make_literal(self, character: str) -> Characters:
        return Characters(self._fold_ranges(((character, character),)))

    def _parse_group(self) -> Node:
        self._depth += 1
        if self._depth > DEPTH_MAX:
            raise invalid_regex("too complex")
        rest, number = self.pattern[self.position : self.position + 3], None
        look = next((one for one in _LOOKAROUND if rest.startswith(one[0])), None)
        if look is not None:
            self.position += len(look[0])
        elif rest.startswith("?:"):
            self.position += 2
        elif rest.startswith("?"):
            raise invalid_regex("quantifier operand invalid")
        elif not self._lookaround_depth:  # inside of lookaround nothing is captured
            self.groups += 1
            number = self.groups
        self._lookaround_depth += look is not None
        inner = self._parse_alternation()
        self._lookaround_depth -= look is not None
        if self._peek_character() != ")":
            raise invalid_regex("parentheses () not balanced")
        self.position += 1
        self._depth -= 1
        self._quantifiable = look is None
        return Group(inner, number) if look is None else Look(inner, look[1], look[2])

    def _parse_escape(self) -> Node:
        character = self._peek_character()
        if not character:
            raise invalid_regex("invalid escape \\ sequence")
        self.position += 1
        if character.lower() in _SHORT:
            return Characters(_SHORT[character.lower()], negated=character.isupper())
        if character in _ASSERTIONS:
            return self._make_assertion(_ASSERTIONS[character])
        if "1" <= character <= "9":
            if int(character) > self.groups or self._lookaround_depth:
                raise invalid_regex("invalid backreference number")
            return BackReference(int(character))
        return self._make_literal(self._parse_literal_escape(character))

    def _parse_literal_escape(self, character: str) -> str:
        if character in _CONTROL:
            return _CONTROL[character]
        if character == "c" and self.position < len(self.pattern):
            self.position += 1
            return chr(ord(self.pattern[self.position - 1]) & 31)
        if character in _DIGITS:
            match = _DIGITS[character].match(self.pattern, self.position)
            if match is None:
                raise invalid_regex("invalid escape \\ sequence")
            self.position = match.end()
            code = int(match[0] or "0", 8 if character == "0" else 16)
            if code > ord(CHARACTER_MAX):
                raise invalid_regex("invalid escape \\ sequence")
            return chr(code)
        if character.isascii() and character.isalnum():
            raise invalid_regex("invalid escape \\ sequence")
        return character

    # -- brackets -----------------------------------------------------------------------------

    def _parse_bracket(self) -> Node:
        rest = self.pattern[self.position - 1 : self.position + 6]
        for word, name in (("[[:<:]]", "word_begin"), ("[[:>:]]", "word_end")):
            if rest == word:
                self.position += len(word) - 1
                return self._make_assertion(name)
        negated = self._peek_character() == "^"
        self.position += negated
        ranges: list[tuple[str, str]] = []
        first = True
        while first or self._peek_character() != "]":
            if not self._peek_character():
                raise invalid_regex("brackets [] not balanced")
            first = False
            ranges += self._parse_bracket_part()
        self.position += 1
        if negated and self.lines:
            ranges.append(("\n", "\n"))
        return Characters(self._fold_ranges(tuple(ranges)), negated)

    def _parse_bracket_part(self) -> Ranges:
        start = self._parse_bracket_item()
        if not isinstance(start, str):
            return start
        if self._peek_character() == "-" and self.pattern[
            self.position + 1 : self.position + 2
        ] not in (
            "]",
            "",
        ):
            self.position += 1
            end = self._parse_bracket_item()
            if not isinstance(end, str) or end < start:
                raise invalid_regex("invalid character range")
            return ((start, end),)
        return ((start, start),)

    def _parse_bracket_item(self) -> str | Ranges:
        """One character, or the ranges of a class."""
        pattern, at = self.pattern, self.position
        if pattern.startswith("[:", at):
            end = pattern.find(":]", at)
            name = pattern[at + 2 : end]
            if end < 0 or name not in _CLASSES:
                raise invalid_regex("invalid character class")
            self.position = end + 2
            return _CLASSES[name]
        if pattern.startswith(("[.", "[="), at):
            end = pattern.find(pattern[at + 1] + "]", at + 2)
            if end != at + 3:
                raise Unsupported("multi-character collating elements are not supported")
            self.position = end + 2
            return pattern[at + 2]
        self.position += 1
        return pattern[at] if pattern[at] != "\\" else self._parse_bracket_escape()

    def _parse_bracket_escape(self) -> str | Ranges:
        character = self._peek_character()
        if not character:
            raise invalid_regex("invalid escape \\ sequence")
        self.position += 1
        if character in _SHORT:
            return _SHORT[character]
        if character.lower() in _SHORT or character in _ASSERTIONS:
            raise invalid_regex("invalid escape \\ sequence")
        return self._parse_literal_escape(character)

    def _fold_ranges(self, ranges: Ranges) -> Ranges:
        """With `folded`, the ranges and their ASCII letters in the other case."""
        if not self.folded:
            return ranges
        more = []
        for low, high in ranges:
            for first, last, shift in (("a", "z", -32), ("A", "Z", 32)):
                start, end = max(low, first), min(high, last)
                if start <= end:
                    more.append((chr(ord(start) + shift), chr(ord(end) + shift)))
        return ranges + tuple(more)
