"""Every mutation by its name, and the two ways to apply one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.mutations import engine, isolation, rewrite, row, views
from tests.mutations.patch import Mutation, restore

ENGINE = {**engine.MUTATIONS, **isolation.MUTATIONS, **views.MUTATIONS}
"""Bugs that the crash harness catches, each by a schedule of its own."""

ROW = row.MUTATIONS
"""Bugs that earlier drafts of the row-atomic commit had: the explorer catches them."""

REWRITE = rewrite.MUTATIONS
"""Bugs of query rewriting: random queries catch them."""

ALL: dict[str, Mutation] = {**ENGINE, **ROW, **REWRITE}


def mutate(name: str) -> None:
    """Apply a mutation for as long as this process lives; '' applies none."""
    if name:
        ALL[name].apply()


@contextmanager
def mutated(name: str) -> Iterator[None]:
    """The mutation is in place inside, and gone afterwards; '' is none."""
    known = ALL[name].apply() if name else []
    try:
        yield
    finally:
        restore(known)
