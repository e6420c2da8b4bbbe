"""Text to tokens, by PostgreSQL's lexical rules.

One regular expression finds each token; strings that need more (escapes, dollar quotes, nested
comments) are finished by hand. `?` is always a parameter, numbered from left to right, so the JSON
operators that contain one cannot be written.

Token kinds
- WORD: an unquoted identifier or keyword, folded to lower case
- QUOTED: a quoted identifier
- STRING: a string constant, escapes resolved
- INTEGER, NUMBER: as written, without underscores
- PARAMETER: its number
- SIGN: punctuation or an operator
- END: the end of the text
- BITS: the letter and the digits of a bit string
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from belvedere.errors import InvalidInput
from belvedere.sql.parse.lexical.escapes import (
    is_valid_escape,
    unescape_string,
    unescape_unicode,
)
from belvedere.values.texts import require_text

WORD: Final = 0
QUOTED: Final = 1
STRING: Final = 2
INTEGER: Final = 3
NUMBER: Final = 4
PARAMETER: Final = 5
SIGN: Final = 6
END: Final = 7
BITS: Final = 8

NAME_BYTES_MAX = 63
PARAMETERS_MAX = 65_535
# Longer ones are NUMBERs: Python does not make an int of more than some thousand digits.
INTEGER_DIGITS_MAX = 1_000


_HEX = re.compile(r"[0-9a-fA-F]*")
_BINARY = re.compile(r"[01]*")


class SqlToken(NamedTuple):
    """`start` and `end` are offsets into the text; `text` is what the kind says."""

    kind: int
    text: str
    start: int
    end: int


_TOKEN = re.compile(
    r"""
    (?P<space>\s+|--[^\n\r]*)
  | (?P<prefixed>[eEbBxXnN]'|[uU]&['"])
  | (?P<word>[^\W\d][\w$]*)
  | (?P<string>'[^']*(?:''[^']*)*')
  | (?P<sign>::|:=|\.\.|[()\[\],;:]|\.(?!\d))
  | (?P<number>0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+
      |(?:\d(?:_?\d)*(?:\.(?!\.)(?:\d(?:_?\d)*)?)?|\.\d(?:_?\d)*)(?:[eE][+-]?\d(?:_?\d)*)?)
  | (?P<comment>/\*)
  | (?P<operator>(?:(?!--|/\*)[+\-*/<>=~!@#%^&|`])+)
  | (?P<quoted>"[^"]*(?:""[^"]*)*")
  | (?P<parameter>\$\d+|\?)
  | (?P<dollar>\$(?:[^\W\d]\w*)?\$)
    """,
    re.VERBOSE,
)
_KEEPS_SIGN = re.compile(r"[~!@#%^&|`]")
_COMMENT_EDGE = re.compile(r"/\*|\*/")
_CONTINUED = re.compile(r"(?:[ \t\f\v]|--[^\n\r]*)*[\n\r](?:\s|--[^\n\r]*)*'")
_UESCAPE = re.compile(r"\s*UESCAPE\s*'([^']*)'", re.IGNORECASE)


def tokenize(text: str) -> list[SqlToken]:
    """The tokens of a text, with one END at its end."""
    if "\0" in text:
        raise syntax_error("null character in statement", text.index("\0"))
    if not text.isascii():
        require_text(text)
    return _Lexer(text).scan_tokens()


def syntax_error(message: str, at: int, **facts: Any) -> InvalidInput:
    return InvalidInput(message, sqlstate="42601", position=at + 1, **facts)


class _Lexer:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[SqlToken] = []
        self.marks = 0  # how many ? were met
        self.numbered = False  # whether a $n was met

    def scan_tokens(self) -> list[SqlToken]:
        text, tokens = self.text, self.tokens
        scan = _TOKEN.match
        at, size = 0, len(text)
        while at < size:
            found = scan(text, at)
            if found is None:
                at = self.fail_unmatched(at)
                continue
            end = found.end()
            match found.lastgroup:
                case "space":
                    pass
                case "word":
                    tokens.append(SqlToken(WORD, fold_case(found.group()), at, end))
                case "sign":
                    tokens.append(SqlToken(SIGN, found.group(), at, end))
                case "string":
                    end = self.scan_string(found.group()[1:-1].replace("''", "'"), at, end)
                case "number":
                    end = self.scan_number(found.group(), at, end)
                case "operator":
                    end = self.scan_operator(found.group(), at)
                case _:
                    end = self.scan_rare_token(found, at, end)
            at = end
        tokens.append(SqlToken(END, "", size, size))
        return tokens

    def scan_rare_token(self, found: re.Match[str], at: int, end: int) -> int:
        match found.lastgroup:
            case "quoted":
                name = found.group()[1:-1].replace('""', '"')
                if not name:
                    raise syntax_error("zero-length quoted identifier", at)
                self.tokens.append(SqlToken(QUOTED, truncate_name(name), at, end))
            case "parameter":
                self.tokens.append(
                    SqlToken(PARAMETER, self.number_parameter(found.group(), at), at, end)
                )
            case "comment":
                return self.skip_comment(at)
            case "dollar":
                return self.scan_dollar_string(found.group(), at, end)
            case "prefixed":
                return self.scan_prefixed_string(found.group(), at, end)
        return end

    def fail_unmatched(self, at: int) -> int:
        sign = self.text[at]
        if sign == "'":
            raise syntax_error("unterminated quoted string", at)
        if sign == '"':
            raise syntax_error("unterminated quoted identifier", at)
        raise syntax_error("syntax error", at, near=sign)

    def scan_string(self, value: str, at: int, end: int) -> int:
        """A string may continue on the next line: 'a' <newline> 'b' is one string."""
        while more := _CONTINUED.match(self.text, end):
            part = _TOKEN.match(self.text, more.end() - 1)
            if part is None:
                raise syntax_error("unterminated quoted string", more.end() - 1)
            value += part.group()[1:-1].replace("''", "'")
            end = part.end()
        self.tokens.append(SqlToken(STRING, value, at, end))
        return end

    def scan_number(self, digits: str, at: int, end: int) -> int:
        follow = self.text[end : end + 1]
        if follow == "_" or follow.isalnum() or follow == "$":
            raise syntax_error("trailing junk after numeric literal", at, near=digits + follow)
        digits = digits.replace("_", "")
        if digits[:2].lower() in ("0x", "0o", "0b"):
            if len(digits) > INTEGER_DIGITS_MAX:
                raise InvalidInput("number is too long", sqlstate="22003", position=at + 1)
            self.tokens.append(SqlToken(INTEGER, str(int(digits, 0)), at, end))
        elif digits.isdigit() and len(digits) <= INTEGER_DIGITS_MAX:
            self.tokens.append(SqlToken(INTEGER, digits, at, end))
        else:
            self.tokens.append(SqlToken(NUMBER, digits, at, end))
        return end

    def scan_operator(self, sign: str, at: int) -> int:
        """A trailing + or - belongs to the operator only if it has one of the rarer characters."""
        if len(sign) > 1 and not _KEEPS_SIGN.search(sign):
            kept = sign.rstrip("+-")
            sign = kept if kept else sign[0]
        end = at + len(sign)
        self.tokens.append(SqlToken(SIGN, "<>" if sign == "!=" else sign, at, end))
        return end

    def number_parameter(self, written: str, at: int) -> str:
        if written == "?":
            self.marks += 1
            number = self.marks
        else:
            self.numbered = True
            number = int(written[1:8])
        if self.marks and self.numbered:
            raise syntax_error("statement mixes ? and $n parameters", at)
        if not 1 <= number <= PARAMETERS_MAX:
            raise InvalidInput("there is no such parameter", sqlstate="42P02", position=at + 1)
        return str(number)

    def skip_comment(self, at: int) -> int:
        depth, place = 0, at
        while found := _COMMENT_EDGE.search(self.text, place):
            depth += 1 if found.group() == "/*" else -1
            place = found.end()
            if depth == 0:
                return place
        raise syntax_error("unterminated comment", at)

    def scan_dollar_string(self, tag: str, at: int, end: int) -> int:
        close = self.text.find(tag, end)
        if close < 0:
            raise syntax_error("unterminated dollar-quoted string", at)
        self.tokens.append(SqlToken(STRING, self.text[end:close], at, close + len(tag)))
        return close + len(tag)

    def scan_prefixed_string(self, prefix: str, at: int, end: int) -> int:
        letter, quote = prefix[0].lower(), prefix[-1]
        if letter in "bx":
            return self.scan_bit_string(letter, at, end)
        close, raw = self.scan_quoted(end, quote, escapes=letter == "e")
        while quote == "'" and (more := _CONTINUED.match(self.text, close)):
            close, part = self.scan_quoted(more.end(), quote, escapes=letter == "e")
            raw += part
        if letter == "e":
            raw = unescape_string(raw, at)
        elif letter == "u":
            raw, close = self.resolve_unicode_escapes(raw, at, close)
        if quote == "'":
            self.tokens.append(SqlToken(STRING, raw, at, close))
            return close
        if not raw:
            raise syntax_error("zero-length quoted identifier", at)
        self.tokens.append(SqlToken(QUOTED, truncate_name(raw), at, close))
        return close

    def resolve_unicode_escapes(self, raw: str, at: int, close: int) -> tuple[str, int]:
        """U&'..' [UESCAPE 'c']: its text, and where it ends."""
        escape = "\\"
        if found := _UESCAPE.match(self.text, close):
            escape, close = found[1], found.end()
            if not is_valid_escape(escape):
                raise syntax_error("invalid unicode escape character", at)
        return unescape_unicode(raw, escape, at), close

    def scan_bit_string(self, letter: str, at: int, start: int) -> int:
        close, raw = self.scan_quoted(start, "'", escapes=False)
        if not (_HEX if letter == "x" else _BINARY).fullmatch(raw):
            raise InvalidInput("not a valid digit", sqlstate="22P02", position=at + 1)
        self.tokens.append(SqlToken(BITS, letter + raw, at, close))
        return close

    def scan_quoted(self, start: int, quote: str, escapes: bool) -> tuple[int, str]:
        """The end of a quoted text and its inside with doubled quotes made one."""
        place, parts = start, []
        while place < len(self.text):
            sign = self.text[place]
            if escapes and sign == "\\":
                parts.append(self.text[place : place + 2])
                place += 2
            elif sign == quote:
                if self.text[place + 1 : place + 2] != quote:
                    return place + 1, "".join(parts)
                parts.append(quote)
                place += 2
            else:
                parts.append(sign)
                place += 1
        raise syntax_error("unterminated quoted string", start - 1)


def fold_case(word: str) -> str:
    """An unquoted name in lower case; only ASCII letters fold."""
    if word.islower():
        lower = word
    elif word.isascii():
        lower = word.lower()
    else:
        lower = "".join(c.lower() if c.isascii() else c for c in word)
    return truncate_name(lower)


def truncate_name(name: str) -> str:
    """A name is cut to 63 bytes, as everywhere in PostgreSQL."""
    if len(name) <= NAME_BYTES_MAX and (name.isascii() or len(name) * 4 <= NAME_BYTES_MAX):
        return name
    return name.encode("utf-8", "replace")[:NAME_BYTES_MAX].decode("utf-8", "ignore")
