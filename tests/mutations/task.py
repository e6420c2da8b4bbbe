"""A mutation in the Python workers of Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tests.mutations.registry import mutated


@dataclass(frozen=True, slots=True)
class MutatedTask:
    """A task that runs with a mutation, in whatever process that is."""

    mutation: str
    task: Callable[[Any], Iterator[Any]]

    def __call__(self, batches: Any) -> Iterator[Any]:
        with mutated(self.mutation):
            yield from self.task(batches)
