"""Judges a history. Shares nothing with the engine: it knows lists, numbers and order.

What is looked for, and from which isolation level on it is forbidden:

| anomaly | levels |
|---|---|
| dirty write (G0), aborted read (G1a), intermediate read (G1b) | all |
| circular information flow (G1c) | all |
| lost update, duplicate element, torn transaction, vanished version | all |
| lost insert, own writes not seen, duplicate key, duplicate value | all |
| orphan, wrong total, wrong count | all |
| an index that differs from its table | all |
| read your writes, monotonic reads (between the transactions of a session) | all |
| non-repeatable read, read skew (G-single), snapshot not of its position, long fork | snapshot |
| write skew (G2), nobody on call | serializable |
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from tests.simulation.history.events import (
    ABORTED,
    COMMITTED,
    READ_COMMITTED,
    SERIALIZABLE,
    Txn,
)
from tests.simulation.history.graph import Graph

Version = tuple[Any, ...]


class Anomaly(NamedTuple):
    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


@dataclass(slots=True)
class Seen:
    """One version of one list as somebody else left it, seen by a transaction."""

    txn: Txn
    key: Any
    version: Version


@dataclass(slots=True)
class Judge:
    history: list[Txn]
    level: str
    total: int | None = None
    problems: list[Anomaly] = field(default_factory=list)
    _writer: dict[Any, Txn] = field(default_factory=dict)
    _order: dict[Any, Version] = field(default_factory=dict)
    _seen: list[Seen] = field(default_factory=list)
    _by_txn: dict[str, list[Seen]] = field(default_factory=dict)

    def note(self, kind: str, text: str) -> None:
        self.problems.append(Anomaly(kind, text))

    # -- lists --------------------------------------------------------------------------------

    def read_lists(self) -> None:
        for txn in self.history:
            for elements in txn.appends().values():
                for element in elements:
                    if element in self._writer:
                        self.note("duplicate element", f"{element} was appended twice")
                    self._writer[element] = txn
        keys = {key for txn in self.history for key in txn.appends()}
        for txn in self.history:
            self._by_txn[txn.id] = list(self._external(txn, keys))
            self._seen += self._by_txn[txn.id]
        self._find_order()

    def _external(self, txn: Txn, keys: set[Any]) -> Iterator[Seen]:
        """Versions as others left them: own appends, which must be at the end, taken off."""
        mine: dict[Any, list[Any]] = defaultdict(list)
        for op in txn.ops:
            if op.kind == "append":
                mine[op.key].append(op.value)
                continue
            if op.kind == "read":
                found = {op.key: op.value}
            elif op.kind == "scan":
                found = {**dict.fromkeys(keys, ()), **op.value}
            else:
                continue
            for key, elements in found.items():
                own = tuple(mine[key])
                version = tuple(elements)
                if own and version[-len(own) :] != own:
                    self.note("own writes not seen", f"{txn.id} read {key} as {version}")
                else:
                    yield Seen(txn, key, version[: len(version) - len(own)])

    def _find_order(self) -> None:
        """The order of a list's versions is its longest version; all others are prefixes of it."""
        for seen in self._seen:
            if seen.txn.outcome != ABORTED and len(seen.version) > len(
                self._order.get(seen.key, ())
            ):
                self._order[seen.key] = seen.version
        for key, order in self._order.items():
            for element, count in Counter(order).items():
                if count > 1:
                    self.note("duplicate element", f"{element} is in {key} {count} times")
        for seen in self._seen:
            order = self._order.get(seen.key, ())
            if seen.version != order[: len(seen.version)]:
                self.note(
                    "vanished version",
                    f"{seen.txn.id} read {seen.key} as {seen.version}, not a part of {order}",
                )

    def check_elements(self) -> None:
        for seen in self._seen:
            for element in seen.version:
                writer = self._writer.get(element)
                if writer is None:
                    self.note("aborted read", f"{seen.txn.id} read {element}, which nobody wrote")
                elif writer.outcome == ABORTED:
                    self.note("aborted read", f"{seen.txn.id} read {element} of {writer.id}")
            self._check_last(seen)

    def _check_last(self, seen: Seen) -> None:
        if not seen.version or seen.version[-1] not in self._writer:
            return
        writer = self._writer[seen.version[-1]]
        wrote = writer.appends().get(seen.key, [])
        if writer is not seen.txn and wrote and wrote[-1] != seen.version[-1]:
            self.note(
                "intermediate read",
                f"{seen.txn.id} read {seen.key} up to {seen.version[-1]}, in the middle of "
                f"{writer.id}",
            )

    def check_updates(self) -> None:
        """Of those that appended to one version of a list, one may have committed."""
        based: dict[tuple[Any, Version], set[str]] = defaultdict(set)
        last_read: dict[tuple[str, Any], Version] = {}
        for seen in self._seen:
            last_read[seen.txn.id, seen.key] = seen.version
        for txn in self.history:
            for key in txn.appends():
                if txn.outcome == COMMITTED and (txn.id, key) in last_read:
                    based[key, last_read[txn.id, key]].add(txn.id)
        for (key, version), ids in based.items():
            if len(ids) > 1:
                self.note("lost update", f"{sorted(ids)} all appended to {key} = {version}")

    def check_atomicity(self) -> None:
        """What was committed is there, in all its lists; what is unknown is there in all or none.

        Only with a last look at everything, which the drivers take."""
        last = [txn for txn in self.history if txn.session == "last look" and txn.of("scan")]
        if not last:
            return
        lists = last[-1].of("scan")[-1].value
        for txn in self.history:
            wrote = [(key, e) for key, elements in txn.appends().items() for e in elements]
            there = [element in lists.get(key, ()) for key, element in wrote]
            if txn.outcome == COMMITTED and not all(there):
                self.note("lost update", f"{txn.id} committed {wrote}, not all of it is there")
            if txn.outcome not in (COMMITTED, ABORTED) and 0 < sum(there) < len(there):
                self.note("torn transaction", f"{txn.id} is there in part: {wrote}, {there}")

    def check_repeatable(self) -> None:
        first: dict[tuple[str, Any], Version] = {}
        for seen in self._seen:
            known = first.setdefault((seen.txn.id, seen.key), seen.version)
            if known != seen.version:
                self.note(
                    "non-repeatable read",
                    f"{seen.txn.id} read {seen.key} as {known}, then as {seen.version}",
                )

    def check_positions(self) -> None:
        """A snapshot is of its position: it has every commit up to it and none after it."""
        positions = [
            txn.position for txn in self.history if txn.outcome == COMMITTED and _wrote(txn)
        ]
        for position, count in Counter(positions).items():
            if count > 1 and position:
                self.note("position twice", f"{count} transactions committed at {position}")
        for seen in self._seen:
            if not seen.txn.snapshot:
                continue
            inside = [self._writer[e] for e in seen.version if e in self._writer]
            late = [w.id for w in inside if w.position > seen.txn.snapshot]
            if late and self.level != READ_COMMITTED:
                self.note("snapshot violation", f"{seen.txn.id} saw {late}, which came later")
            missing = [
                self._writer[e].id
                for e in self._order.get(seen.key, ())[len(seen.version) :]
                if e in self._writer
                and 0 < self._writer[e].position <= seen.txn.snapshot
                and self._writer[e] is not seen.txn
            ]
            if missing:
                self.note("snapshot violation", f"{seen.txn.id} missed {missing} in {seen.key}")

    # -- order --------------------------------------------------------------------------------

    def graph(self) -> tuple[Graph, list[Txn]]:
        there = {element for order in self._order.values() for element in order}
        happened = [txn for txn in self.history if _happened(txn, there)]
        number = {txn.id: n for n, txn in enumerate(happened)}
        graph = Graph()
        for order in self._order.values():
            writers = [self._writer[e] for e in order if e in self._writer]
            for before, after in pairwise(writers):
                if before.id in number and after.id in number:
                    graph.add("ww", number[before.id], number[after.id])
        for txn in happened:
            self._add_reads(graph, number, txn)
        _add_real_time(graph, number, happened)
        return graph, happened

    def _add_reads(self, graph: Graph, number: dict[str, int], txn: Txn) -> None:
        reader = number[txn.id]
        for seen in self._by_txn[txn.id]:
            if seen.version and seen.version[-1] in self._writer:
                writer = self._writer[seen.version[-1]].id
                if writer in number:
                    graph.add("wr", number[writer], reader)
            later = self._order.get(seen.key, ())[len(seen.version) :]
            rest = (self._writer[e] for e in later if e in self._writer)
            following = next((w for w in rest if w is not txn), None)
            if following is not None and following.id in number:
                graph.add("rw", reader, number[following.id])

    def check_order(self) -> None:
        graph, happened = self.graph()

        def told(circle: list[int]) -> str:
            return " -> ".join(happened[n].id for n in circle)

        plain = ("ww", "wr")
        dirty = graph.circle(("ww",))
        flow = None if dirty else graph.circle(plain)
        if dirty:
            self.note("dirty write", told(dirty))
        if flow:
            self.note("circular information flow", told(flow))
        if dirty or flow or self.level == READ_COMMITTED:
            return
        self._check_snapshots(graph, told)

    def _check_snapshots(self, graph: Graph, told: Any) -> None:
        plain = ("ww", "wr")
        skew = graph.circle_with_one_rw(plain)
        fork = None if skew else graph.circle_without_two_rw_in_a_row(plain)
        late = None if skew or fork else graph.circle_without_two_rw_in_a_row((*plain, "rt"))
        if skew:
            self.note("read skew", told(skew))
        if fork:
            self.note("long fork", told(fork))
        if late:
            self.note("stale read", told(late))
        if self.level == SERIALIZABLE and not (skew or fork or late):
            circle = graph.circle((*plain, "rw", "rt"))
            if circle:
                self.note("write skew", told(circle))

    # -- sessions -----------------------------------------------------------------------------

    def check_sessions(self) -> None:
        sessions: dict[str, list[Txn]] = defaultdict(list)
        for txn in self.history:
            sessions[txn.session].append(txn)
        for txns in sessions.values():
            self._check_session(sorted(txns, key=lambda txn: txn.began))

    def _check_session(self, txns: list[Txn]) -> None:
        seen_length: dict[Any, int] = {}
        written: dict[Any, set[Any]] = defaultdict(set)
        for txn in txns:
            for seen in self._by_txn[txn.id]:
                missing = written[seen.key] - set(seen.version)
                if missing:
                    self.note("read your writes", f"{txn.id} misses {missing} in {seen.key}")
                if len(seen.version) < seen_length.get(seen.key, 0):
                    self.note("monotonic reads", f"{txn.id} read an older {seen.key}")
            for seen in self._by_txn[txn.id]:
                known = seen_length.get(seen.key, 0)
                seen_length[seen.key] = max(known, len(seen.version))
            if txn.outcome == COMMITTED:
                for key, elements in txn.appends().items():
                    written[key] |= set(elements)

    # -- the rest -----------------------------------------------------------------------------

    def check_totals(self) -> None:
        for txn in self.history:
            for op in txn.of("total"):
                if self.total is not None and op.value != self.total:
                    self.note("wrong total", f"{txn.id} saw {op.value}, not {self.total}")
            for op in txn.of("shift"):
                if op.value < 1 and self.level == SERIALIZABLE:
                    self.note("write skew", f"{txn.id} saw nobody on call in {op.key}")

    def check_counts(self) -> None:
        """A counter is never beyond what may have been added, and ends with all that was."""
        sure: Counter[Any] = Counter()
        possible: Counter[Any] = Counter()
        for txn in self.history:
            for op in txn.of("add"):
                if txn.outcome == COMMITTED:
                    sure[op.key] += op.value
                if txn.outcome != ABORTED:
                    possible[op.key] += op.value
        for txn in self.history:
            for op in txn.of("count"):
                low = sure[op.key] if txn.session == "last look" else 0
                if not low <= op.value <= possible[op.key]:
                    right = f"{low} to {possible[op.key]} is right"
                    self.note("wrong count", f"{txn.id} saw {op.value} in {op.key}: {right}")

    def check_keys(self) -> None:
        for kind, name in (("insert", "duplicate key"), ("claim", "duplicate value")):
            taken: dict[Any, set[str]] = defaultdict(set)
            for txn in self.history:
                for op in txn.of(kind):
                    if txn.outcome == COMMITTED:
                        taken[op.key].add(txn.id)
            for key, ids in taken.items():
                if len(ids) > 1:
                    self.note(name, f"{key} was given to {sorted(ids)}")
            self._check_taken(kind)

    def _check_taken(self, kind: str) -> None:
        """What the last look found under a key was put there, and what was put there is found."""
        asked: dict[tuple[Any, Any], str] = {}
        for txn in self.history:
            asked |= {(op.key, op.value): txn.outcome for op in txn.of(kind)}
        for txn in self.history:
            for op in txn.of(f"{kind}s"):
                found = {(key, value) for key, value in op.value}
                lost = [pair for pair, told in asked.items() if told == COMMITTED]
                lost = [pair for pair in lost if pair not in found]
                if lost:
                    self.note("lost insert", f"{txn.id} does not see {lost}")
                bad = [pair for pair in found if asked.get(pair, ABORTED) == ABORTED]
                if bad:
                    self.note("aborted read", f"{txn.id} sees {bad}, which were not committed")

    def check_mirrors(self) -> None:
        for txn in self.history:
            for op in txn.of("mirror"):
                base, copy = op.value
                if base != copy:
                    self.note("index differs", f"{txn.id} saw {base} and, by {op.key}, {copy}")

    def check_families(self) -> None:
        for txn in self.history:
            for op in txn.of("family"):
                parents, children = op.value
                orphans = [pair for pair in children if pair[1] not in parents]
                if orphans:
                    self.note("orphan", f"{txn.id} saw {orphans} without their parents")


def _happened(txn: Txn, there: set[Any]) -> bool:
    """Committed, or of unknown outcome but seen by somebody."""
    if txn.outcome in (COMMITTED, ABORTED):
        return txn.outcome == COMMITTED
    return any(e in there for elements in txn.appends().values() for e in elements)


def _wrote(txn: Txn) -> bool:
    return any(op.kind in ("append", "add", "insert", "claim") for op in txn.ops)


def _add_real_time(graph: Graph, number: dict[str, int], happened: list[Txn]) -> None:
    """Edges from what had ended to what began; those that follow from others are left out."""
    events = [(txn.began, 1, txn) for txn in happened]
    events += [(txn.ended, 0, txn) for txn in happened if txn.outcome == COMMITTED]
    frontier: list[Txn] = []
    for _, begins, txn in sorted(events, key=lambda event: event[:2]):
        if begins:
            for before in frontier:
                graph.add("rt", number[before.id], number[txn.id])
        else:
            frontier = [before for before in frontier if not before.ended < txn.began]
            frontier.append(txn)


def check(history: list[Txn], level: str, total: int | None = None) -> list[Anomaly]:
    """Everything that is wrong with a history for its isolation level."""
    judge = Judge(history, level, total)
    judge.read_lists()
    judge.check_elements()
    judge.check_updates()
    judge.check_atomicity()
    judge.check_positions()
    if level != READ_COMMITTED:
        judge.check_repeatable()
    judge.check_order()
    judge.check_sessions()
    judge.check_totals()
    judge.check_counts()
    judge.check_keys()
    judge.check_families()
    judge.check_mirrors()
    return judge.problems
