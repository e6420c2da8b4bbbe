"""Who must come before whom, and the circles in it.

Edges, after Adya, with versions of a list told from its elements:

    ww   the next version of a list that somebody wrote
    wr   read the version somebody wrote
    rw   read a version that somebody else replaced
    rt   ended before the other began (real time; sessions are part of it)

A circle of ww is a dirty write (G0); with wr, circular information flow (G1c); with exactly one rw,
read skew (G-single). A snapshot history may have circles, but each has two rw side by side; a
serial one has none.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

Node = int


@dataclass(slots=True)
class Graph:
    """Edges by kind. Nobody comes before itself: such edges are left out."""

    edges: dict[str, dict[Node, set[Node]]] = field(default_factory=dict)

    def add(self, kind: str, before: Node, after: Node) -> None:
        if before != after:
            self.edges.setdefault(kind, {}).setdefault(before, set()).add(after)

    def after(self, node: Node, kinds: Iterable[str]) -> Iterator[Node]:
        for kind in kinds:
            yield from self.edges.get(kind, {}).get(node, ())

    def nodes(self, kinds: Iterable[str]) -> set[Node]:
        found: set[Node] = set()
        for kind in kinds:
            for before, afters in self.edges.get(kind, {}).items():
                found.add(before)
                found |= afters
        return found

    def circle(self, kinds: tuple[str, ...]) -> list[Node] | None:
        """A circle of these kinds of edges, or None."""
        nodes = self.nodes(kinds)
        for group in components(nodes, lambda node: self.after(node, kinds)):
            if len(group) > 1:
                start = min(group)
                return self._path_back(start, group, kinds)
        return None

    def _path_back(self, start: Node, group: set[Node], kinds: tuple[str, ...]) -> list[Node]:
        return path(start, start, lambda n: (m for m in self.after(n, kinds) if m in group)) or []

    def circle_with_one_rw(self, others: tuple[str, ...]) -> list[Node] | None:
        """A circle with exactly one rw edge."""
        for before, afters in sorted(self.edges.get("rw", {}).items()):
            for after in sorted(afters):
                back = path(after, before, lambda node: self.after(node, others))
                if back is not None:
                    return [before, *back]
        return None

    def circle_without_two_rw_in_a_row(self, others: tuple[str, ...]) -> list[Node] | None:
        """What no snapshot history has: a circle in which no rw follows another.

        Found as a circle among (node, whether an rw led to it)."""

        def after(state: tuple[Node, bool]) -> Iterator[tuple[Node, bool]]:
            node, by_rw = state
            for follower in self.after(node, others):
                yield follower, False
            if not by_rw:
                for follower in self.after(node, ("rw",)):
                    yield follower, True

        nodes = self.nodes((*others, "rw"))
        states = {(node, by_rw) for node in nodes for by_rw in (False, True)}
        for group in components(states, after):
            if len(group) > 1:
                start = min(group)
                inside = group
                back = path(start, start, lambda s: (t for t in after(s) if t in inside))  # noqa: B023
                return [node for node, _ in back or []]
        return None


def path(start, end, after):  # type: ignore[no-untyped-def]
    """A shortest way of at least one step from start to end, both included; None without one."""
    came_from = {}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        for follower in after(node):
            if follower == end:
                way = [end, node]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1]
            if follower not in came_from and follower != start:
                came_from[follower] = node
                queue.append(follower)
    return None


def components(nodes, after):  # type: ignore[no-untyped-def]
    """Strongly connected components (Tarjan, without recursion)."""
    index, low, on_stack, stack, found = {}, {}, set(), [], []
    for root in sorted(nodes):
        if root in index:
            continue
        work = [(root, iter(list(after(root))))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            node, followers = work[-1]
            for follower in followers:
                if follower not in index:
                    index[follower] = low[follower] = len(index)
                    stack.append(follower)
                    on_stack.add(follower)
                    work.append((follower, iter(list(after(follower)))))
                    break
                if follower in on_stack:
                    low[node] = min(low[node], index[follower])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    found.append(_unwind(stack, on_stack, node))
    return found


def _unwind(stack, on_stack, node):  # type: ignore[no-untyped-def]
    group = set()
    while True:
        member = stack.pop()
        on_stack.discard(member)
        group.add(member)
        if member == node:
            return group
