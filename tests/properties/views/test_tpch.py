"""The 22 queries of TPC-H as views, at a small scale; `make long RUN=tpch` does it at a larger
one."""

from __future__ import annotations

import pytest

from tests.properties.views.workloads.tpch import INCREMENTAL_LEAST, loaded


@pytest.mark.slow
def test_every_query_is_right_as_a_view(seed: int) -> None:
    with loaded(400, seed) as tpch:
        counts = tpch.counts
        assert not counts.refused
        assert len(counts.incremental) >= INCREMENTAL_LEAST, str(counts)
        for number, _ in enumerate(tpch.cycle()):
            if number in (1, 3, 4, 5):
                tpch.compare()
        assert not counts.wrong, f"seed {seed}: {counts.wrong}"
        assert counts.comparisons == 4 * 2 * 22
