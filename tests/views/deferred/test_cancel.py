"""A REFRESH is canceled while it computes, in whichever way, and the view stays as it was."""

from __future__ import annotations

from typing import Any

import pytest

import belvedere
from belvedere.views.cost.tier_selector import TierSelector
from belvedere.views.deferred import batch

PAIRS = "SELECT a.id, b.id AS other FROM t a JOIN t b ON a.g = b.g"
SUMS = "SELECT a.g, sum(a.v * b.v) AS s FROM t a JOIN t b ON a.g = b.g GROUP BY a.g"
BY_PARTITION = "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY id) AS s FROM t"
STEPS: tuple[tuple[Any, str], ...] = (
    (TierSelector, "record_additions_by_tier"),
    (TierSelector, "try_record_refill"),
    (batch, "try_add_up_by_columns"),
)


@pytest.mark.parametrize("query", [PAIRS, SUMS, BY_PARTITION])
def test_refresh_is_canceled_while_it_computes(query: str) -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
        con.execute(
            "CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred', refresh_every = '1 day')"
            f" AS {query}"
        )
        con.execute("INSERT INTO t SELECT n, 1, n FROM generate_series(1, 100) g(n)")
        for tier in ("python", "duckdb", "refill"):
            con.execute(f"SET maintenance_tier = {tier}")
            with pytest.MonkeyPatch.context() as patched:
                ended: list[bool] = []
                for owner, name in STEPS:
                    method = getattr(owner, name)
                    patched.setattr(owner, name, cancel_at_begin(con, method, ended))
                with pytest.raises(belvedere.OperationalError) as caught:
                    con.execute("REFRESH MATERIALIZED VIEW v")
            assert caught.value.sqlstate == "57014"
            assert True not in ended, tier
            assert ended
            assert con.execute("SELECT count(*) FROM v", freshness="any").fetchone() == (0,)
        con.execute("REFRESH MATERIALIZED VIEW v")
        assert con.execute("VERIFY MATERIALIZED VIEW v").fetchall()[0][-1]


def cancel_at_begin(con: belvedere.Connection, method: Any, ended: list[bool]) -> Any:
    """The method, with a cancel before it; the list tells whether it came to its end."""

    def cancel_and_run(*given: Any, **options: Any) -> Any:
        con.cancel()
        at = len(ended)
        ended.append(False)
        found = method(*given, **options)
        ended[at] = not isinstance(found, str)  # a text says why it was not tried
        return found

    return cancel_and_run
