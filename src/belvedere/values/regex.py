"""PostgreSQL's regular expressions, translated to Python's.

A pattern is translated once (C locale: classes are ASCII) and matched with `re`. The two differ in
which of several matches they take: PostgreSQL the longest at the leftmost position, Python the
first its backtracking finds. Whether there is a match is the same in both; for its extent
`find_match` searches for a longer (or, for a non-greedy expression, shorter) one at the same
position. Patterns for which that cannot be determined from outside raise `Unsupported`; invalid
ones 2201B.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass

from belvedere.errors import InvalidInput, Unsupported
from belvedere.values.failures import bad_argument

_CLASSES = {
    "alpha": "a-zA-Z",
    "digit": "0-9",
    "alnum": "a-zA-Z0-9",
    "upper": "A-Z",
    "lower": "a-z",
    "space": " \\t\\n\\r\\f\\v",
    "blank": " \\t",
    "punct": "!-/:-@\\[-`{-~",
    "xdigit": "0-9a-fA-F",
    "word": "a-zA-Z0-9_",
    "cntrl": "\\x00-\\x1f\\x7f",
    "graph": "!-~",
    "print": " -~",
    "ascii": "\\x00-\\x7f",
}
_SHORT = {"d": _CLASSES["digit"], "s": _CLASSES["space"], "w": _CLASSES["word"]}
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
    "A": r"\A",
    "Z": r"\Z",
    "m": r"(?<![a-zA-Z0-9_])(?=[a-zA-Z0-9_])",
    "M": r"(?<=[a-zA-Z0-9_])(?![a-zA-Z0-9_])",
    "y": r"\b",
    "Y": r"\B",
}
_BOUND = re.compile(r"\{(\d{1,3})(,(\d{0,3}))?\}")


def invalid_regex(reason: str) -> InvalidInput:
    return InvalidInput("invalid regular expression", sqlstate="2201B", reason=reason)


@dataclass(frozen=True, slots=True)
class Regex:
    """A compiled pattern, and the properties that decide whether match extents are exact."""

    compiled: re.Pattern[str]
    alternates: bool
    greedy: int
    lazy: int
    anchored_inside: bool


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
    if pattern.startswith("***"):
        raise Unsupported("regular expression directors (***) are not supported")
    embedded = re.match(r"\(\?([a-z]+)\)", pattern)
    if embedded is not None:
        flags += parse_flags(embedded[1])[0]
        pattern = pattern[embedded.end() :]
    if "q" in flags:
        return Regex(re.compile(re.escape(pattern), _case_flag(flags)), False, 0, 0, False)
    translator = _RegexTranslator(pattern, "n" in flags or "m" in flags, "x" in flags)
    try:
        compiled = re.compile(translator.translate(), _case_flag(flags) | re.ASCII | re.DOTALL)
    except (re.error, OverflowError) as error:
        raise invalid_regex(str(error)) from None
    except RecursionError:
        raise invalid_regex("too complex") from None
    return Regex(
        compiled,
        translator.alternates,
        translator.greedy,
        translator.lazy,
        translator.anchored_inside,
    )


def _case_flag(flags: str) -> int:
    # The last of i and c counts.
    return re.IGNORECASE if flags.rfind("i") > flags.rfind("c") else 0


class _RegexTranslator:
    """One pass over the pattern, from PostgreSQL's syntax to Python's."""

    def __init__(self, pattern: str, lines: bool, extended: bool) -> None:
        self.pattern, self.lines, self.extended = pattern, lines, extended
        self.position = 0
        self.out: list[str] = []
        self.alternates = self.anchored_inside = False
        self.greedy = self.lazy = 0
        self.groups = 0
        self.open_groups: list[bool] = []
        self.quantifiable = False

    def translate(self) -> str:
        while self.position < len(self.pattern):
            self.translate_character(self.pattern[self.position])
        if self.open_groups:
            raise invalid_regex("parentheses () not balanced")
        return "".join(self.out)

    def emit(self, text: str, quantifiable: bool = True) -> None:
        self.out.append(text)
        self.quantifiable = quantifiable

    def translate_character(self, character: str) -> None:
        if self.extended and (character.isspace() or character == "#"):
            self.skip_comment(character)
            return
        self.position += 1
        if character == "\\":
            self.translate_escape()
        elif character == "[":
            self.translate_bracket()
        elif character == "(":
            self.open_group()
        elif character == ")":
            self.close_group()
        elif character in "*+?" or (character == "{" and self.digit_follows()):
            self.translate_quantifier(character)
        else:
            self.translate_plain(character)

    def translate_plain(self, character: str) -> None:
        if character == "|":
            self.alternates = True
            self.emit("|", False)
        elif character == ".":
            self.emit("[^\n]" if self.lines else ".")
        elif character == "^":
            self.emit("(?m:^)" if self.lines else r"\A", False)
        elif character == "$":
            self.anchored_inside = True
            self.emit(r"(?=\n|\Z)" if self.lines else r"\Z", False)
        else:
            self.emit(re.escape(character))

    def skip_comment(self, character: str) -> None:
        if character == "#":
            end = self.pattern.find("\n", self.position)
            self.position = len(self.pattern) if end < 0 else end + 1
        else:
            self.position += 1

    def digit_follows(self) -> bool:
        return self.pattern[self.position : self.position + 1].isdigit()

    def translate_quantifier(self, character: str) -> None:
        if not self.quantifiable:
            raise invalid_regex("quantifier operand invalid")
        text = character
        variable = True
        if character == "{":
            match = _BOUND.match(self.pattern, self.position - 1)
            if match is None:
                raise invalid_regex("invalid repetition count")
            low, high = int(match[1]), int(match[3] or match[1])
            if low > 255 or high > 255 or high < low:
                raise invalid_regex("invalid repetition count")
            variable = match[2] is not None and (not match[3] or high != low)
            text, self.position = match[0], match.end()
        if self.pattern[self.position : self.position + 1] == "?":
            text += "?"
            self.position += 1
            self.lazy += 1
        elif variable:
            self.greedy += 1
        self.emit(text, False)

    def open_group(self) -> None:
        rest = self.pattern[self.position :]
        for opening in ("?:", "?=", "?!", "?<=", "?<!"):
            if rest.startswith(opening):
                self.position += len(opening)
                self.anchored_inside |= opening != "?:"
                self.open_groups.append(opening == "?:")
                self.emit("(" + opening, False)
                return
        if rest.startswith("?"):
            raise invalid_regex("quantifier operand invalid")
        self.groups += 1
        self.open_groups.append(True)
        self.emit("(", False)

    def close_group(self) -> None:
        if not self.open_groups:
            raise invalid_regex("parentheses () not balanced")
        self.emit(")", self.open_groups.pop())

    def translate_escape(self) -> None:
        if self.position >= len(self.pattern):
            raise invalid_regex("invalid escape \\ sequence")
        character = self.pattern[self.position]
        self.position += 1
        if character in _SHORT:
            self.emit(f"[{_SHORT[character]}]")
        elif character.lower() in _SHORT:
            self.emit(f"[^{_SHORT[character.lower()]}]")
        elif character in _ASSERTIONS:
            self.anchored_inside |= character != "A"
            self.emit(_ASSERTIONS[character], False)
        elif "1" <= character <= "9":
            self.back_reference(character)
        else:
            self.emit(re.escape(self.literal_escape(character)))

    def back_reference(self, character: str) -> None:
        if int(character) > self.groups:
            raise invalid_regex("invalid backreference number")
        self.emit(f"(?:\\{character})")

    def literal_escape(self, character: str) -> str:
        if character in _CONTROL:
            return _CONTROL[character]
        if character == "c" and self.position < len(self.pattern):
            self.position += 1
            return chr(ord(self.pattern[self.position - 1]) & 31)
        digits = {
            "x": r"[0-9a-fA-F]{1,8}",
            "u": r"[0-9a-fA-F]{4}",
            "U": r"[0-9a-fA-F]{8}",
            "0": r"[0-7]{0,2}",
        }
        if character in digits:
            match = re.compile(digits[character]).match(self.pattern, self.position)
            if match is None:
                raise invalid_regex("invalid escape \\ sequence")
            self.position = match.end()
            code = int(match[0] or "0", 8 if character == "0" else 16)
            if code > 0x10FFFF:
                raise invalid_regex("invalid escape \\ sequence")
            return chr(code)
        if character.isascii() and character.isalnum():
            raise invalid_regex("invalid escape \\ sequence")
        return character

    def translate_bracket(self) -> None:
        rest = self.pattern[self.position - 1 :]
        for word, boundary in (("[[:<:]]", "m"), ("[[:>:]]", "M")):
            if rest.startswith(word):
                self.position += len(word) - 1
                self.anchored_inside = True
                self.emit(_ASSERTIONS[boundary], False)
                return
        negated = self.pattern[self.position : self.position + 1] == "^"
        self.position += negated
        parts: list[str] = []
        first = True
        while True:
            if self.position >= len(self.pattern):
                raise invalid_regex("brackets [] not balanced")
            if self.pattern[self.position] == "]" and not first:
                break
            first = False
            parts.append(self.bracket_part())
        self.position += 1
        if negated and self.lines:
            parts.append("\n")
        self.emit(f"[{'^' if negated else ''}{''.join(parts)}]")

    def bracket_part(self) -> str:
        start = self.bracket_item()
        if len(start) != 1:
            return start
        if self.pattern[self.position : self.position + 1] == "-" and self.pattern[
            self.position + 1 : self.position + 2
        ] not in ("]", ""):
            self.position += 1
            end = self.bracket_item()
            if len(end) != 1 or end < start:
                raise invalid_regex("invalid character range")
            return f"{_set_escape(start)}-{_set_escape(end)}"
        return _set_escape(start)

    def bracket_item(self) -> str:
        """One character, or the inside of a class."""
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
        if pattern[at] != "\\":
            return pattern[at]
        if self.position >= len(pattern):
            raise invalid_regex("invalid escape \\ sequence")
        character = pattern[self.position]
        self.position += 1
        if character in _SHORT:
            return _SHORT[character]
        if character.lower() in _SHORT or character in _ASSERTIONS:
            raise invalid_regex("invalid escape \\ sequence")
        return self.literal_escape(character)


def _set_escape(character: str) -> str:
    return "\\" + character if character in "\\]^-[&~|" else character


def find_match(regex: Regex, text: str, start: int = 0) -> re.Match[str] | None:
    """The match PostgreSQL takes at or after `start`."""
    match = regex.compiled.search(text, start)
    if match is None or not (regex.alternates or regex.greedy + regex.lazy > 1 or regex.lazy):
        return match
    if regex.lazy and (regex.greedy or regex.alternates):
        raise Unsupported(
            "regular expressions that mix greedy and non-greedy are not supported here"
        )
    ends = range(match.start(), match.end()) if regex.lazy else range(len(text), match.end(), -1)
    for end in ends:
        other = regex.compiled.fullmatch(text, match.start(), end)
        if other is not None:
            if regex.anchored_inside and regex.compiled.fullmatch(text, match.start()) is None:
                raise Unsupported("the extent of this regular expression's match is not supported")
            return other
    return match


def check_captures(regex: Regex) -> None:
    """Refuse captures whose extent depends on which alternative is tried first."""
    if regex.alternates and regex.compiled.groups and not _has_equal_widths(regex.compiled.pattern):
        raise Unsupported("captures beside alternatives of several lengths are not supported")


@functools.lru_cache(maxsize=256)
def _has_equal_widths(pattern: str) -> bool:
    """True when every alternation is between plain characters or classes: no choice of length."""
    bare = re.sub(r"\[\^?\]?(?:\\.|[^\]\\])*\]|\\.", "x", pattern)
    for inside in re.findall(r"\(\??:?([^()]*\|[^()]*)\)", bare):
        widths = {len(part) if re.fullmatch(r"\w*", part) else -1 for part in inside.split("|")}
        if len(widths) > 1 or -1 in widths:
            return False
    return "|" not in re.sub(r"\([^()]*\)", "", bare)
