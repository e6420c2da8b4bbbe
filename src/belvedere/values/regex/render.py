"""A tree as the text of a pattern: for Python's `re`, or for RE2 where that can express it."""

from __future__ import annotations

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

_WORD = "[a-zA-Z0-9_]"
_PYTHON_ASSERTIONS = {
    "begin": r"\A",
    "end": r"\Z",
    "line_begin": "(?m:^)",
    "line_end": r"(?=\n|\Z)",
    "word_begin": rf"(?<!{_WORD})(?={_WORD})",
    "word_end": rf"(?<={_WORD})(?!{_WORD})",
    "boundary": r"\b",
    "inside": r"\B",
}
_RE2_ASSERTIONS = {
    "begin": r"\A",
    "end": r"\z",
    "line_begin": "(?m:^)",
    "line_end": "(?m:$)",
    "boundary": r"\b",
    "inside": r"\B",
}
_SPECIAL = frozenset("\\]^-[&~|.*+?(){}$#")


def render_python(node: Node) -> str:
    """Text for `re`, with the flags ASCII and DOTALL."""
    return _render_node(node, _PYTHON_ASSERTIONS)


def render_re2(node: Node) -> str | None:
    """Text for RE2, or None: it has no lookaround, back-references or ends of words."""
    for one in walk_tree(node):
        if isinstance(one, Look | BackReference):
            return None
        if isinstance(one, Assertion) and one.name not in _RE2_ASSERTIONS:
            return None
    return _render_node(node, _RE2_ASSERTIONS)


def _render_node(node: Node, assertions: dict[str, str]) -> str:
    match node:
        case Characters():
            return _render_characters(node)
        case Assertion(name):
            return assertions[name]
        case Concatenation(items):
            return "".join(_render_item(one, assertions) for one in items)
        case Alternation(items):
            return "|".join(_render_node(one, assertions) for one in items)
        case Group(inner, number):
            return f"({'?:' if number is None else ''}{_render_node(inner, assertions)})"
        case Look(inner, ahead, negative):
            opening = ("?" if ahead else "?<") + ("!" if negative else "=")
            return f"({opening}{_render_node(inner, assertions)})"
        case BackReference(number):
            return f"(?:\\{number})"
        case Repeat():
            return _render_repeat(node, assertions)


def _render_item(node: Node, assertions: dict[str, str]) -> str:
    text = _render_node(node, assertions)
    return f"(?:{text})" if isinstance(node, Alternation) else text


def _render_repeat(node: Repeat, assertions: dict[str, str]) -> str:
    known = {(0, None): "*", (1, None): "+", (0, 1): "?"}
    if (sign := known.get((node.low, node.high))) is None:
        high = "" if node.high is None else node.high
        sign = f"{{{node.low}}}" if node.high == node.low else f"{{{node.low},{high}}}"
    inner = _render_node(node.inner, assertions)
    if isinstance(node.inner, Concatenation | Alternation | Repeat):
        inner = f"(?:{inner})"
    return f"{inner}{sign}{'?' if node.lazy else ''}"


def _render_characters(node: Characters) -> str:
    if not node.ranges:
        return "."
    if not node.negated and len(node.ranges) == 1 and node.ranges[0][0] == node.ranges[0][1]:
        return _escape_character(node.ranges[0][0])
    parts = [
        _escape_character(low)
        if low == high
        else f"{_escape_character(low)}-{_escape_character(high)}"
        for low, high in node.ranges
    ]
    return f"[{'^' if node.negated else ''}{''.join(parts)}]"


def _escape_character(character: str) -> str:
    return "\\" + character if character in _SPECIAL else character
