"""Regular expressions: the ~ operators, regexp_* functions, substring by pattern, SIMILAR TO."""

from __future__ import annotations

import re
from collections.abc import Iterator

from belvedere.plan.functions.core.function import UDF, Function, scalar, set_returning
from belvedere.values.failures import bad_argument
from belvedere.values.regex.match import (
    Match,
    Regex,
    compile_regex,
    compile_text_test,
    find_between,
    find_match,
    iterate_matches,
    parse_flags,
)
from belvedere.values.value_size import require_value_size

_BYTES_PER_PART = 64  # a short text in a list


def matches(text: str, pattern: str) -> bool:
    search, length_max, test_long = compile_text_test(pattern)
    return search(text) is not None if len(text) <= length_max else test_long(text)


def matches_not(text: str, pattern: str) -> bool:
    search, length_max, test_long = compile_text_test(pattern)
    return search(text) is None if len(text) <= length_max else not test_long(text)


def matches_folded(text: str, pattern: str) -> bool:
    search, length_max, test_long = compile_text_test(pattern, "i")
    return search(text) is not None if len(text) <= length_max else test_long(text)


def matches_folded_not(text: str, pattern: str) -> bool:
    search, length_max, test_long = compile_text_test(pattern, "i")
    return search(text) is None if len(text) <= length_max else not test_long(text)


def substring(text: str, pattern: str) -> str | None:
    regex = compile_regex(pattern)
    match = find_match(regex, text)
    if match is None:
        return None
    if regex.groups:
        regex.refuse_unequal_alternatives()
        captured = match[1]
        return captured if isinstance(captured, str) else None
    return match[0]


def substring_similar(text: str, pattern: str, escape: str) -> str | None:
    """substring(text SIMILAR pattern ESCAPE escape): the text between the two separators.

    The text before them is as short as possible, then the text between them as long as possible.
    """
    if len(escape) > 1:
        raise bad_argument("invalid escape string", "22025")
    pieces = _split_at_separators(pattern, escape)
    if len(pieces) > 3:
        raise bad_argument("pattern contains more than two escape-double-quote separators", "2200C")
    if len(pieces) == 1:
        return text if matches(text, similar_escape(pattern, escape)) else None
    before, between, after = (
        f"(?:{''.join(_similar_parts(piece, escape))})" for piece in (*pieces, "")[:3]
    )
    found = find_between(text, before, between, after)
    return None if found is None else text[found[0] : found[1]]


def _captured_groups(regex: Regex, match: Match) -> list[str | None]:
    if not regex.groups:
        return [match[0]]
    regex.refuse_unequal_alternatives()
    return list(match.groups())


def regexp_match(text: str, pattern: str) -> list[str | None] | None:
    return regexp_match_flags(text, pattern, "")


def regexp_match_flags(text: str, pattern: str, flags: str) -> list[str | None] | None:
    options, everywhere = parse_flags(flags)
    if everywhere:
        raise bad_argument("regexp_match does not support the global option")
    regex = compile_regex(pattern, options)
    match = find_match(regex, text)
    return None if match is None else _captured_groups(regex, match)


def regexp_matches(text: str, pattern: str) -> list[list[str | None]]:
    return regexp_matches_flags(text, pattern, "")


def regexp_matches_flags(text: str, pattern: str, flags: str) -> list[list[str | None]]:
    options, everywhere = parse_flags(flags)
    regex = compile_regex(pattern, options)
    found = [_captured_groups(regex, match) for match in iterate_matches(regex, text)]
    return found if everywhere else found[:1]


def regexp_replace(text: str, pattern: str, replacement: str) -> str:
    return regexp_replace_flags(text, pattern, replacement, "")


def regexp_replace_flags(text: str, pattern: str, replacement: str, flags: str) -> str:
    if flags[:1].isdigit():
        raise bad_argument("invalid regular expression option")
    options, everywhere = parse_flags(flags)
    return _replace_matches(
        text, compile_regex(pattern, options), replacement, 0, 0 if everywhere else 1
    )


def regexp_replace_from(text: str, pattern: str, replacement: str, start: int) -> str:
    return regexp_replace_nth(text, pattern, replacement, start, 1)


def regexp_replace_nth(text: str, pattern: str, replacement: str, start: int, number: int) -> str:
    return regexp_replace_nth_flags(text, pattern, replacement, start, number, "")


def regexp_replace_nth_flags(
    text: str, pattern: str, replacement: str, start: int, number: int, flags: str
) -> str:
    if start <= 0 or number < 0:
        raise bad_argument("invalid value for parameter")
    options, _ = parse_flags(flags)
    return _replace_matches(text, compile_regex(pattern, options), replacement, start - 1, number)


def _replace_matches(text: str, regex: Regex, replacement: str, start: int, number: int) -> str:
    """`text` with its `number`th match from `start` on replaced, or every one when that is 0."""
    if re.search(r"\\[1-9]", replacement):
        regex.refuse_unequal_alternatives()
    out: list[str] = []
    position, size = 0, len(text)
    for count, match in enumerate(iterate_matches(regex, text, start), 1):
        if number in (0, count):
            out.append(text[position : match.start()])
            out.append(_expand_replacement(replacement, match, regex.groups))
            size += len(out[-1])
            require_value_size(size)
            position = match.end()
            if number:
                break
    out.append(text[position:])
    return "".join(out)


def _expand_replacement(replacement: str, match: Match, groups: int) -> str:
    def expand_reference(reference: re.Match[str]) -> str:
        sign = reference[1]
        if sign == "&":
            return str(match[0])
        if sign == "\\":
            return "\\"
        if sign.isdigit():
            number = int(sign)
            if number > groups:
                return ""
            return match[number] or ""
        return str(reference[0])

    return (
        re.sub(r"\\(.)", expand_reference, replacement, flags=re.DOTALL)
        if "\\" in replacement
        else replacement
    )


def regexp_count(text: str, pattern: str) -> int:
    return regexp_count_from(text, pattern, 1)


def regexp_count_from(text: str, pattern: str, start: int) -> int:
    return regexp_count_flags(text, pattern, start, "")


def regexp_count_flags(text: str, pattern: str, start: int, flags: str) -> int:
    regex = _compile_single(pattern, flags, start)
    return sum(1 for _ in iterate_matches(regex, text, start - 1))


def _compile_single(pattern: str, flags: str, *counts: int) -> Regex:
    """The compiled regex of a function without global option, whose counts begin at 1."""
    if any(count <= 0 for count in counts):
        raise bad_argument("invalid value for parameter")
    options, everywhere = parse_flags(flags)
    if everywhere:
        raise bad_argument("this function does not support the global option")
    return compile_regex(pattern, options)


def regexp_instr(
    text: str,
    pattern: str,
    start: int = 1,
    number: int = 1,
    end: int = 0,
    flags: str = "",
    group: int = 0,
) -> int:
    """Where the match begins (`end` 0) or what follows it (`end` 1); 0 when there is none."""
    _compile_single(pattern, "", start, number)
    if end not in (0, 1) or group < 0:
        raise bad_argument("invalid value for parameter")
    found = _find_nth_span(text, _compile_single(pattern, flags), start, number, group)
    return 0 if found is None else found[end] + 1


def regexp_substr(
    text: str, pattern: str, start: int = 1, number: int = 1, flags: str = "", group: int = 0
) -> str | None:
    _compile_single(pattern, "", start, number)
    if group < 0:
        raise bad_argument("invalid value for parameter")
    found = _find_nth_span(text, _compile_single(pattern, flags), start, number, group)
    return None if found is None else text[found[0] : found[1]]


def _find_nth_span(
    text: str, regex: Regex, start: int, number: int, group: int
) -> tuple[int, int] | None:
    """The span of a group of the `number`th match; None when there is none of it."""
    if group > regex.groups:
        return None
    if group:
        regex.refuse_unequal_alternatives()
    for count, match in enumerate(iterate_matches(regex, text, start - 1), 1):
        if count == number:
            return None if match.start(group) < 0 else match.span(group)
    return None


def regexp_like(text: str, pattern: str) -> bool:
    return matches(text, pattern)


def regexp_like_flags(text: str, pattern: str, flags: str) -> bool:
    options, everywhere = parse_flags(flags)
    if everywhere:
        raise bad_argument("regexp_like does not support the global option")
    return compile_regex(pattern, options).has_match(text)


def regexp_split_to_array(text: str, pattern: str) -> list[str]:
    return regexp_split_flags(text, pattern, "")


def regexp_split_flags(text: str, pattern: str, flags: str) -> list[str]:
    parts: list[str] = []
    position = 0
    for match in iterate_matches(_compile_single(pattern, flags), text):
        if match.end() == match.start() and match.start() in (position, len(text)):
            continue  # it would split off an empty part
        parts.append(text[position : match.start()])
        require_value_size(_BYTES_PER_PART * len(parts))
        position = match.end()
    return [*parts, text[position:]]


def similar_to_escape(pattern: str) -> str:
    return similar_escape(pattern, "\\")


def similar_escape(pattern: str, escape: str) -> str:
    """A SIMILAR TO pattern as a regular expression."""
    if len(escape) > 1:
        raise bad_argument("invalid escape string", "22025")
    return "^(?:" + "".join(_similar_parts(pattern, escape)) + ")$"


def _split_at_separators(pattern: str, escape: str) -> list[str]:
    """The pattern split at its separators: escaped double quotes outside of brackets."""
    pieces, start, at, bracket = [], 0, 0, False
    while at < len(pattern):
        if escape and pattern[at] == escape:
            if pattern[at + 1 : at + 2] == '"' and not bracket:
                pieces.append(pattern[start:at])
                start = at + 2
            at += 2
            continue
        bracket = pattern[at] == "[" or (bracket and pattern[at] != "]")
        at += 1
    return [*pieces, pattern[start:]]


def _similar_parts(pattern: str, escape: str) -> Iterator[str]:
    bracket = 0  # 0 outside, 1 at its start, 2 after ^ at the start, 3 further in
    escaped = False
    depth = 0
    for character in pattern:
        if escaped:
            yield "\\" + character
            escaped = False
            bracket = 3 if bracket else 0
        elif escape and character == escape:
            escaped = True
        elif bracket:
            if character == "]" and bracket == 3 and depth == 0:
                bracket = 0
            elif character == "^" and bracket == 1:
                bracket = 2
            else:
                bracket = 3
            yield "\\\\" if character == "\\" else character
        elif character == "[":
            bracket = 1
            yield character
        else:
            yield {
                "%": ".*",
                "_": ".",
                "(": "(?:",
                "\\": "\\\\",
                ".": "\\.",
                "^": "\\^",
                "$": "\\$",
            }.get(character, character)


def _match_operators(left: str) -> list[Function]:
    forms = (
        ("~", matches),
        ("!~", matches_not),
        ("~*", matches_folded),
        ("!~*", matches_folded_not),
    )
    return [scalar(f"{name}({left},text) bool", form, UDF) for name, form in forms]


_INSTR = ("text", "text", "int4", "int4", "int4", "text", "int4")
_SUBSTR = ("text", "text", "int4", "int4", "text", "int4")

FUNCTIONS: tuple[Function, ...] = (
    *_match_operators("text"),
    *_match_operators("bpchar"),
    scalar("substring(text,text) text", substring, UDF),
    scalar("substring(text,text,text) text", substring_similar, UDF),
    scalar("regexp_match(text,text) text[]", regexp_match, UDF),
    scalar("regexp_match(text,text,text) text[]", regexp_match_flags, UDF),
    set_returning("regexp_matches(text,text) text[]", regexp_matches),
    set_returning("regexp_matches(text,text,text) text[]", regexp_matches_flags),
    scalar("regexp_replace(text,text,text) text", regexp_replace, UDF),
    scalar("regexp_replace(text,text,text,text) text", regexp_replace_flags, UDF),
    scalar("regexp_replace(text,text,text,int4) text", regexp_replace_from, UDF),
    scalar("regexp_replace(text,text,text,int4,int4) text", regexp_replace_nth, UDF),
    scalar("regexp_replace(text,text,text,int4,int4,text) text", regexp_replace_nth_flags, UDF),
    scalar("regexp_count(text,text) int4", regexp_count, UDF),
    scalar("regexp_count(text,text,int4) int4", regexp_count_from, UDF),
    scalar("regexp_count(text,text,int4,text) int4", regexp_count_flags, UDF),
    *(
        scalar(f"regexp_instr({','.join(_INSTR[:count])}) int4", regexp_instr, UDF)
        for count in range(2, len(_INSTR) + 1)
    ),
    *(
        scalar(f"regexp_substr({','.join(_SUBSTR[:count])}) text", regexp_substr, UDF)
        for count in range(2, len(_SUBSTR) + 1)
    ),
    scalar("regexp_like(text,text) bool", regexp_like, UDF),
    scalar("regexp_like(text,text,text) bool", regexp_like_flags, UDF),
    scalar("regexp_split_to_array(text,text) text[]", regexp_split_to_array, UDF),
    scalar("regexp_split_to_array(text,text,text) text[]", regexp_split_flags, UDF),
    set_returning("regexp_split_to_table(text,text) text", regexp_split_to_array),
    set_returning("regexp_split_to_table(text,text,text) text", regexp_split_flags),
    scalar("similar_to_escape(text) text", similar_to_escape, UDF),
    scalar("similar_to_escape(text,text) text", similar_escape, UDF),
)
