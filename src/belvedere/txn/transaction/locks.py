"""Locks held by transactions: root keys and entire tables, each kind counted and visible.

Acquired at the first write of a root, kept to the end of the transaction. A request that would
close a cycle of waiting is refused at once with 40P01: the requester is the victim, so no other
transaction is hurt and none waits for a timeout. Every wait has a deadline (55P03).

Queues are fair: a request waits behind every earlier one it conflicts with, so a stream of shared
holders cannot starve an exclusive one.

A free lock is taken without the mutex, by one `setdefault`, which is atomic between threads.
Everything else happens under the mutex, so an entry goes from absent to present in either way, but
is changed or removed in one only.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

from belvedere import interrupts
from belvedere.errors import Retry, Unavailable
from belvedere.txn.contracts import ROOT, LockRequest, OwnedLock

Owner = bytes
"""A transaction id."""

Resource = bytes | tuple[str, bytes]
"""A root key bare, since nearly every lock is one; anything else with its kind."""


class HeldLock(NamedTuple):
    """A row of the system table of locks."""

    kind: str
    key: bytes
    owner: Owner
    shared: bool
    granted: bool


_Holder = tuple[Owner, bool]
"""Owner and whether shared: stands for a queue of one, since nearly no lock is ever waited for."""


@dataclass(slots=True)
class _Request:
    owner: Owner
    shared: bool
    wake: threading.Event | None = None  # None: granted without waiting


@dataclass(slots=True)
class _Queue:
    """Granted requests first, then those waiting, in order of arrival."""

    granted: list[_Request] = field(default_factory=list)
    waiting: list[_Request] = field(default_factory=list)


class RowLockTable:
    def __init__(self, wait_ms_max: int) -> None:
        self._wait_ms_max = wait_ms_max
        self._mutex = threading.Lock()
        self._queues: dict[Resource, _Holder | _Queue] = {}
        self._waits_on: dict[Owner, Resource] = {}
        self._acquired: Counter[str] = Counter()  # without those that have no queue now,
        self._roots = 0  # and those of root keys that were never contended
        self.waited: Counter[str] = Counter()
        self.deadlocks = 0

    @property
    def acquired_counts(self) -> Counter[str]:
        """How many locks of each kind were ever granted."""
        with self._mutex:
            alone = [_kind_of(r) for r, queue in list(self._queues.items()) if type(queue) is tuple]
            return self._acquired + Counter(alone) + Counter({ROOT: self._roots})

    def acquire_root(self, owner: Owner, key: bytes, wait_ms: int | None = None) -> None:
        """The exclusive lock of a root key: nearly every lock there is."""
        mine = (owner, False)
        if self._queues.setdefault(key, mine) is not mine:
            self._acquire_resource(owner, key, False, wait_ms)

    def acquire_roots(
        self,
        owner: Owner,
        keys: Sequence[bytes],
        held: dict[OwnedLock, None],
        before_wait: Callable[[int], None],
        wait_ms: int | None = None,
    ) -> None:
        """The exclusive locks of many root keys, except those in `held`, to which each is added as
        soon as it is granted. `before_wait` gets the place of each key that another one holds."""
        mine, claim = (owner, False), self._queues.setdefault
        for place, key in enumerate(keys):
            if key not in held:
                if claim(key, mine) is not mine:
                    before_wait(place)
                    self._acquire_resource(owner, key, False, wait_ms)
                held[key] = None

    def is_root_held(self, key: bytes) -> bool:
        return key in self._queues

    def acquire(self, owner: Owner, request: LockRequest, wait_ms: int | None = None) -> bool:
        """Take the lock; True when it had to wait. The owner must not hold it already."""
        return self._acquire_resource(owner, _resource_of(request), request.is_shared, wait_ms)

    def _acquire_resource(
        self, owner: Owner, resource: Resource, shared: bool, wait_ms: int | None
    ) -> bool:
        with self._mutex:
            alone = (owner, shared)
            found = self._queues.setdefault(resource, alone)
            if found is alone:
                return False
            queue = self._ensure_queue(resource, found)
            mine = _Request(owner, shared)
            if not queue.waiting and _is_compatible(mine, queue.granted):
                queue.granted.append(mine)
                self._acquired[_kind_of(resource)] += 1
                return False
            if wait_ms == 0:  # not even for a moment: others would wait behind it
                raise _timeout_error(resource, queue, 0)
            self._enqueue_request(mine, resource, queue)
        self._wait_for_grant(mine, resource, wait_ms)
        return True

    def _ensure_queue(self, resource: Resource, found: _Holder | _Queue) -> _Queue:
        """The queue of a resource that is held."""
        if isinstance(found, tuple):
            found = self._queues[resource] = _Queue([_Request(*found)])
            self._acquired[_kind_of(resource)] += 1
        return found

    def _enqueue_request(self, mine: _Request, resource: Resource, queue: _Queue) -> None:
        mine.wake = threading.Event()
        queue.waiting.append(mine)
        self._waits_on[mine.owner] = resource
        self.waited[_kind_of(resource)] += 1
        cycle = self._find_cycle(mine.owner)
        if cycle:
            self._leave_queue(mine, resource, queue)
            self.deadlocks += 1
            raise Retry(
                "deadlock detected",
                sqlstate="40P01",
                detail="waiting in a circle: " + " -> ".join(o.hex()[-8:] for o in cycle),
                hint="run the transaction again",
                kind=_kind_of(resource),
            )

    def _wait_for_grant(self, mine: _Request, resource: Resource, wait_ms: int | None) -> None:
        assert mine.wake is not None
        limit_ms = self._wait_ms_max if wait_ms is None else wait_ms
        try:
            if _wait_interruptibly(mine.wake, limit_ms / 1000):
                return
        except BaseException:  # an interrupted client must not block the others
            self._abandon_request(mine, resource)
            raise
        with self._mutex:
            if mine.wake.is_set():
                return
            queue = self._ensure_queue(resource, self._queues[resource])
            self._leave_queue(mine, resource, queue)
            raise _timeout_error(resource, queue, limit_ms)

    def _abandon_request(self, mine: _Request, resource: Resource) -> None:
        with self._mutex:
            queue = self._ensure_queue(resource, self._queues[resource])
            if mine in queue.waiting:
                self._leave_queue(mine, resource, queue)
            else:
                queue.granted.remove(mine)
                self._grant_waiting(resource, queue)

    def _leave_queue(self, mine: _Request, resource: Resource, queue: _Queue) -> None:
        queue.waiting.remove(mine)
        self._waits_on.pop(mine.owner, None)
        self._grant_waiting(resource, queue)

    def _find_cycle(self, start: Owner) -> list[Owner] | None:
        """The owners of a wait cycle through `start`, if there is one."""
        stack = [(start, [start])]
        seen = set()
        while stack:
            owner, path = stack.pop()
            for blocker in self._find_blockers(owner):
                if blocker == start:
                    return [*path, start]
                if blocker not in seen:
                    seen.add(blocker)
                    stack.append((blocker, [*path, blocker]))
        return None

    def _find_blockers(self, owner: Owner) -> Iterable[Owner]:
        resource = self._waits_on.get(owner)
        if resource is None:
            return
        queue = self._ensure_queue(resource, self._queues[resource])
        mine = next(r for r in queue.waiting if r.owner == owner)
        ahead = queue.waiting[: queue.waiting.index(mine)]
        for other in (*queue.granted, *ahead):
            if other.owner != owner and not (mine.shared and other.shared):
                yield other.owner

    def release(self, owner: Owner, held: Iterable[OwnedLock]) -> None:
        """Release these locks and wake the waiters that can proceed."""
        with self._mutex:
            queues = self._queues
            for lock in held:
                resource = lock if type(lock) is bytes else _resource_of(cast("LockRequest", lock))
                queue = queues.get(resource)
                if isinstance(queue, tuple):
                    del queues[resource]
                    if resource is lock:
                        self._roots += 1  # nearly every one
                    else:
                        self._acquired[_kind_of(resource)] += 1
                elif queue is not None:  # None: released with the owner's other form of it
                    self._release_granted(owner, resource, queue)

    def _release_granted(self, owner: Owner, resource: Resource, queue: _Queue) -> None:
        queue.granted = [request for request in queue.granted if request.owner != owner]
        self._grant_waiting(resource, queue)

    def _grant_waiting(self, resource: Resource, queue: _Queue) -> None:
        while queue.waiting and _is_compatible(queue.waiting[0], queue.granted):
            request = queue.waiting.pop(0)
            queue.granted.append(request)
            self._acquired[_kind_of(resource)] += 1
            self._waits_on.pop(request.owner, None)
            assert request.wake is not None
            request.wake.set()
        if not queue.granted and not queue.waiting:
            self._queues.pop(resource, None)

    def list_locks(self) -> list[HeldLock]:
        """Everything granted and everything waited for, for the system table."""
        with self._mutex:
            return [
                HeldLock(
                    _kind_of(resource), _key_of(resource), request.owner, request.shared, granted
                )
                for resource, found in list(self._queues.items())
                for queue in (self._ensure_queue(resource, found),)
                for granted, requests in ((True, queue.granted), (False, queue.waiting))
                for request in requests
            ]


def _wait_interruptibly(wake: threading.Event, seconds: float) -> bool:
    """Wait until `wake` is set; False at the timeout. Raises when the statement has to stop."""
    deadline = time.monotonic() + seconds
    while not wake.wait(min(seconds, interrupts.POLL_S)):
        interrupts.check_statement()
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            return False
    return True


def _resource_of(request: LockRequest) -> Resource:
    return request.key if request.kind == ROOT else (request.kind, request.key)


def _timeout_error(resource: Resource, queue: _Queue, wait_ms: int) -> Unavailable:
    holders = ", ".join(request.owner.hex()[-8:] for request in queue.granted)
    return Unavailable(
        "lock wait timed out",
        sqlstate="55P03",
        detail=f"held by {holders}",
        hint="try again, or raise lock_timeout" if wait_ms else "try again, or leave out NOWAIT",
        kind=_kind_of(resource),
        wait_ms=wait_ms,
    )


def _kind_of(resource: Resource) -> str:
    return ROOT if type(resource) is bytes else str(resource[0])


def _key_of(resource: Resource) -> bytes:
    return resource if isinstance(resource, bytes) else resource[1]


def _is_compatible(mine: _Request, granted: list[_Request]) -> bool:
    """Whether `mine` can be granted together with these. An owner's own shared lock is no
    conflict."""
    return all((mine.shared and r.shared) or r.owner == mine.owner for r in granted)
