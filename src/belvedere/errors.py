"""Every error Belvedere raises, as one small tree.

    Error                 has sqlstate, detail, hint, position, facts
    ├── InvalidInput      fix the statement or the argument; nothing was changed
    ├── Retry             run the transaction again; `lost_to` is the position it lost to
    ├── Unsupported       names the construct that is missing, and what to use instead
    ├── Unavailable       the store cannot do it now: busy, full, timed out, outcome unknown
    └── Corruption        stop: the store is damaged, or something outside Belvedere altered it

A message is constant and lower case, so that it can be searched for and counted; what varies goes
into `facts` (machine-readable), `detail` (for people) and `hint` (what to do). The DB-API door
turns each class into the PEP 249 class that its SQLSTATE belongs to.
"""

from __future__ import annotations

import re
from typing import Any

_SENTENCE = re.compile(r"(?<!that) (is|are|cannot|has|have|does|do|must|needs?) ")


class Error(Exception):
    """The root of the tree. Never raised itself."""

    default_sqlstate = "XX000"

    def __init__(
        self,
        message: str,
        *,
        sqlstate: str | None = None,
        detail: str | None = None,
        hint: str | None = None,
        position: int | None = None,
        **facts: Any,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.sqlstate = sqlstate or self.default_sqlstate
        self.detail = detail
        self.hint = hint
        self.position = position
        self.facts = facts

    def __str__(self) -> str:
        lines = [self.message]
        if self.facts:
            lines[0] += (
                " (" + ", ".join(f"{name}={value}" for name, value in self.facts.items()) + ")"
            )
        if self.detail:
            lines.append(f"detail: {self.detail}")
        if self.hint:
            lines.append(f"hint: {self.hint}")
        return "\n".join(lines)


class InvalidInput(Error):
    """The statement or argument cannot be right. Fix it; nothing was changed."""

    default_sqlstate = "22000"


class Retry(Error):
    """The transaction lost a race. Run it again from the start.

    `lost_to` is the position of the commit it lost to (0 when there is none, as for a deadlock):
    the next attempt reads at least that position, so it cannot lose to the same commit twice.
    """

    default_sqlstate = "40001"

    def __init__(self, message: str, *, lost_to: int = 0, **more: Any) -> None:
        super().__init__(message, **more)
        self.lost_to = lost_to


class Unsupported(Error):
    """A construct Belvedere does not have. The message names it, or says in a sentence what cannot
    be done; the hint names a workaround."""

    default_sqlstate = "0A000"

    def __str__(self) -> str:
        if _SENTENCE.search(self.message):
            return super().__str__()
        first, *more = super().__str__().split("\n")
        head = f"{self.message} is not supported{first[len(self.message) :]}"
        return "\n".join([head, *more])


class Unavailable(Error):
    """The store cannot answer now: locked by another process, out of space, timed out,
    read-only."""

    default_sqlstate = "58000"


class Corruption(Error):
    """The stored data contradicts an invariant. Nothing is served from it."""

    default_sqlstate = "XX001"
