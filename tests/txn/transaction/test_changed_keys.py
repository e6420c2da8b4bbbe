"""The keys that a transaction has changed: ranges of them, while keys come and go."""

from __future__ import annotations

import random

import pytest

from belvedere.txn.transaction import changed_keys
from belvedere.txn.transaction.changed_keys import ChangedKeys


@pytest.mark.parametrize("list_keys_max", [0, 40, 20_000])
def test_ranges_of_keys_that_come_and_go(
    monkeypatch: pytest.MonkeyPatch, list_keys_max: int
) -> None:
    monkeypatch.setattr(changed_keys, "LIST_KEYS_MAX", list_keys_max)
    rng = random.Random(7)
    held = {rng.randbytes(2) for _ in range(10)}
    keys = ChangedKeys(held)
    for _ in range(300):
        some = {rng.randbytes(2) for _ in range(rng.randint(0, 5))} - held
        held |= some
        if len(some) == 1:
            keys.add(*some)
        else:
            keys.update(some)
        if held and rng.random() < 0.5:
            gone = rng.choice(sorted(held))
            held.discard(gone)
            keys.remove(gone)
        start, end = sorted((rng.randbytes(2), rng.randbytes(2)))
        assert keys.find_range(start, end) == sorted(key for key in held if start <= key < end)
