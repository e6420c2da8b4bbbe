"""json_strip_nulls reads a value once, whatever its depth, and can be cancelled."""

from __future__ import annotations

import json
import random
import sys
from types import FrameType
from typing import Any

import pytest

from belvedere import interrupts
from belvedere.plan.functions.nested.json_records import strip_nulls

ATOMS = (None, None, True, 1.5, 7, 'a"\\\n{[,', "n:")


def make_value(rng: random.Random, depth: int) -> Any:
    kind = rng.randrange(4 if depth else 1)
    if kind == 0:
        return rng.choice(ATOMS)
    items = [make_value(rng, depth - 1) for _ in range(rng.randrange(4))]
    if kind == 1:
        return items
    return {rng.choice(("a", 'b"', "{", "null")) + str(n): one for n, one in enumerate(items)}


def remove_nulls(value: Any, in_arrays: bool) -> Any:
    match value:
        case list():
            kept = [one for one in value if not (in_arrays and one is None)]
            return [remove_nulls(one, in_arrays) for one in kept]
        case dict():
            return {k: remove_nulls(v, in_arrays) for k, v in value.items() if v is not None}
        case _:
            return value


def test_random_values_lose_their_nulls_and_nothing_else(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(2_000):
        value, in_arrays = make_value(rng, 5), rng.random() < 0.5
        text = json.dumps(value, indent=rng.choice((None, 1)))
        assert json.loads(strip_nulls(text, in_arrays)) == remove_nulls(value, in_arrays)


def count_lines(depth: int) -> int:
    """How many lines of Python run for an array of 500 numbers in so many arrays."""
    text = "[" * depth + "1," * 500 + "1" + "]" * depth
    lines = 0

    def count(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return count

    previous = sys.gettrace()
    sys.settrace(count)
    try:
        strip_nulls(text)
    finally:
        sys.settrace(previous)
    return lines


def test_cost_does_not_grow_with_depth() -> None:
    assert count_lines(100) < 2 * count_lines(1)


def test_it_ends_when_the_statement_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    def cancel() -> None:
        raise InterruptedError

    monkeypatch.setattr(interrupts.running, "check", cancel, raising=False)
    with pytest.raises(InterruptedError):
        strip_nulls("[" + "1," * 10_000 + "1]")
