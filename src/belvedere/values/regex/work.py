"""An upper bound of the steps that a backtracking matcher takes, found from the pattern alone.

A repetition of characters has as many ways to end as the text has positions, unless what may follow
cannot begin with one of them: then only one way continues. The ways of a sequence multiply; a
repetition of what itself has several ways multiplies without bound. Sets of characters are sets of
129 bits here: the ASCII ones, and one for all others.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

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
    list_children,
    walk_tree,
)

STEPS_MAX = 10_000_000
"""As many steps take a backtracking matcher some tenths of a second."""
_LENGTH_ALWAYS = 12
_LENGTH_UNLIMITED = 10**12
_OTHERS = 1 << 128
_ALL = (1 << 129) - 1
_CHOICES_MAX = 10**9
_ALTERNATIVES_MAX = 50


@dataclass(frozen=True, slots=True)
class Ways:
    """`choices * (length ** degree)` ways to match at one position; no bound: `choices` is None."""

    degree: int
    choices: int | None

    def multiply_by(self, other: Ways) -> Ways:
        if self.choices is None or other.choices is None:
            return UNBOUNDED
        product = self.choices * other.choices
        return UNBOUNDED if product > _CHOICES_MAX else Ways(self.degree + other.degree, product)


ONE = Ways(0, 1)
UNBOUNDED = Ways(0, None)


@dataclass(frozen=True, slots=True)
class WorkBound:
    """At most `factor * length ** power` steps from each position of a text, and positions as many
    as it has, unless the pattern is `anchored` at its beginning. No bound: `factor` is None."""

    power: int
    factor: int | None
    anchored: bool

    def find_length_max(self) -> int:
        """The length of texts up to which all positions take at most STEPS_MAX steps."""
        if self.factor is None:
            return _LENGTH_ALWAYS
        power = self.power + (not self.anchored)
        budget = max(STEPS_MAX / self.factor, 1)
        return _LENGTH_UNLIMITED if power == 0 else int(budget ** (1 / power))

    def allows_search(self, starts: int, length: int) -> bool:
        """Whether so many positions of a text of this length take at most STEPS_MAX steps."""
        if self.factor is None:
            return False
        return bool(starts * self.factor * length**self.power <= STEPS_MAX)


def estimate_work(tree: Node) -> WorkBound:
    nodes = walk_tree(tree)
    ways = count_ways(tree, 0)
    scans = any(isinstance(one, Repeat) and (one.high or 99) > 16 for one in nodes)
    first = tree.items[0] if isinstance(tree, Concatenation) and tree.items else tree
    anchored = isinstance(first, Assertion) and first.name == "begin"
    return WorkBound(max(ways.degree, int(scans)), ways.choices, anchored)


def count_ways(node: Node, follow: int) -> Ways:
    """The ways of a node before one of the characters `follow`."""
    match node:
        case Characters() | Assertion() | BackReference():
            return ONE
        case Group(inner) | Look(inner):
            return count_ways(inner, follow if isinstance(node, Group) else 0)
        case Concatenation(items):
            return _count_sequence(items, follow)
        case Alternation(items):
            return _count_alternation(items, follow)
        case Repeat():
            return _count_repeat(node, follow)


def _count_sequence(items: tuple[Node, ...], follow: int) -> Ways:
    found = ONE
    for item in reversed(items):
        found = found.multiply_by(count_ways(item, follow))
        first, empty = find_first(item)
        follow = first | follow if empty else first
    return found


def _count_alternation(items: tuple[Node, ...], follow: int) -> Ways:
    each = [count_ways(item, follow) for item in items]
    if any(one.choices is None for one in each):
        return UNBOUNDED
    degree = max(one.degree for one in each)
    choices = [one.choices or 1 for one in each]
    pairs = itertools.combinations([(item, _list_leading(item)) for item in items], 2)
    apart = len(items) <= _ALTERNATIVES_MAX and all(
        _are_apart(one, other, follow) for one, other in pairs
    )
    return Ways(degree, max(choices) if apart else sum(choices))


def _are_apart(one: tuple[Node, list[int]], other: tuple[Node, list[int]], follow: int) -> bool:
    """Whether two alternatives cannot both match at one position."""
    if any(not left & right for left, right in zip(one[1], other[1])):
        return True
    (first, empty), (second, void) = find_first(one[0]), find_first(other[0])
    return not (first | follow * empty) & (second | follow * void)


def _list_leading(node: Node) -> list[int]:
    """The sets of the single characters that every match begins with."""
    items = node.items if isinstance(node, Concatenation) else (node,)
    plain = itertools.takewhile(lambda one: isinstance(one, Characters), items)
    return [_character_bits(one) for one in plain if isinstance(one, Characters)]


def _count_repeat(node: Repeat, follow: int) -> Ways:
    first, empty = find_first(node.inner)
    again = node.high is None or node.high > 1
    inner = count_ways(node.inner, follow | first if again else follow)
    if empty and again:
        return UNBOUNDED
    if inner != ONE and again:
        if node.high is None or inner.choices is None or node.high > 8:
            return UNBOUNDED
        inner = Ways(inner.degree * node.high, inner.choices**node.high)
    if node.high == node.low or not first & follow:
        return inner
    if node.high is None:
        return inner.multiply_by(Ways(1, 1))
    return inner.multiply_by(Ways(0, node.high - node.low + 1))


def find_first(node: Node) -> tuple[int, bool]:
    """The characters a match may begin with, and whether it may be empty."""
    match node:
        case Characters():
            return _character_bits(node), False
        case Assertion(name):
            return (0 if name in ("begin", "end") else _ALL), True
        case Look() | BackReference():
            return _ALL, True
        case Group(inner):
            return find_first(inner)
        case Repeat(inner, low):
            first, empty = find_first(inner)
            return first, empty or low == 0
        case Alternation(items):
            found = [find_first(item) for item in items]
            bits = 0
            for one, _ in found:
                bits |= one
            return bits, any(empty for _, empty in found)
        case Concatenation(items):
            bits = 0
            for item in items:
                first, empty = find_first(item)
                bits |= first
                if not empty:
                    return bits, False
            return bits, True


def _character_bits(node: Characters) -> int:
    bits = 0
    for low, high in node.ranges:
        start, end = min(ord(low), 128), min(ord(high), 128)
        bits |= (1 << (end + 1)) - (1 << start)
    if not node.negated:
        return bits
    return (_ALL & ~bits) | _OTHERS


def count_states(node: Node) -> int:
    """About how many states an automaton of the pattern has: repetitions are written out."""
    inside = sum(map(count_states, list_children(node)))
    if isinstance(node, Repeat):
        return max(inside, 1) * max(node.low, node.high or 1, 1)
    return 1 + inside


def find_literal_prefix(tree: Node) -> str:
    """The characters that every match begins with, as far as they are known."""
    items = tree.items if isinstance(tree, Concatenation) else (tree,)
    found = []
    for item in items:
        if not isinstance(item, Characters) or item.negated or len(item.ranges) != 1:
            break
        low, high = item.ranges[0]
        if low != high:
            break
        found.append(low)
    return "".join(found)
