"""A regular expression as a tree."""

from __future__ import annotations

from dataclasses import dataclass

CHARACTER_MAX = chr(0x10FFFF)


@dataclass(frozen=True, slots=True)
class Characters:
    """One character out of inclusive ranges, or out of all others; a literal is one range."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool = False

    def contains(self, character: str) -> bool:
        return any(low <= character <= high for low, high in self.ranges) is not self.negated


@dataclass(frozen=True, slots=True)
class Assertion:
    """A place without characters: begin, end, line_begin, line_end, word_begin, word_end, boundary
    or inside (of a word, or of what is none)."""

    name: str


@dataclass(frozen=True, slots=True)
class Look:
    inner: Node
    ahead: bool
    negative: bool


@dataclass(frozen=True, slots=True)
class BackReference:
    number: int


@dataclass(frozen=True, slots=True)
class Group:
    """`number` is None for a group that captures nothing."""

    inner: Node
    number: int | None


@dataclass(frozen=True, slots=True)
class Repeat:
    inner: Node
    low: int
    high: int | None
    lazy: bool


@dataclass(frozen=True, slots=True)
class Concatenation:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    items: tuple[Node, ...]


Node = Characters | Assertion | Look | BackReference | Group | Repeat | Concatenation | Alternation


def list_children(node: Node) -> tuple[Node, ...]:
    match node:
        case Look(inner) | Group(inner) | Repeat(inner):
            return (inner,)
        case Concatenation(items) | Alternation(items):
            return items
        case _:
            return ()


def walk_tree(node: Node) -> list[Node]:
    """The node and all below it."""
    found, waiting = [], [node]
    while waiting:
        one = waiting.pop()
        found.append(one)
        waiting += list_children(one)
    return found
