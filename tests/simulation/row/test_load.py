"""Closing under load does not collapse; and the measure can fail: closing at once does hit live
writers."""

from __future__ import annotations

import pytest

from belvedere.txn.row_atomic import node
from belvedere.txn.row_atomic.node import NodeSettings
from tests.simulation.row.load import run

SECONDS = 12.0


@pytest.mark.parametrize("writers", [64, 128])
@pytest.mark.parametrize("seed", [1, 2])
def test_live_writers_are_hardly_ever_closed(writers: int, seed: int) -> None:
    load = run(writers, SECONDS, seed, NodeSettings(lease_seconds=4.0))
    print(load.summary())
    assert load.share < 0.01, load.summary()
    windows = [sum(load.per_second[n : n + 5]) for n in range(len(load.per_second) - 4)]
    assert min(windows) > 50, load.per_second


def test_closing_at_once_is_seen_to_hit_live_writers(monkeypatch: pytest.MonkeyPatch) -> None:
    """By nodes that all help at once: those that wait for each other close less, in any case."""
    monkeypatch.setattr(node, "ADVANCE_WAIT_MAX", 0.0)
    hasty = NodeSettings(
        lease_seconds=4.0, close_multiple=0.0, close_seconds_min=0.0, delay_decay=0.0
    )
    load = run(64, SECONDS, 1, hasty)
    print(load.summary())
    assert load.share > 0.02, load.summary()
