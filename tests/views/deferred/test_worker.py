"""The thread that maintains views outlives a store that does not answer."""

from __future__ import annotations

import logging
import threading
from pathlib import Path

import pytest

import belvedere
from belvedere.errors import Unavailable
from belvedere.views.deferred import worker
from belvedere.views.deferred.driver import DeferredMaintenance


@pytest.mark.parametrize(
    "step", ["sample_published_position", "get_schedules_by_group", "advance_groups"]
)
def test_the_thread_goes_on_when_the_store_answers_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, step: str
) -> None:
    monkeypatch.setattr(worker, "FAILURE_WAIT_S", 0.01)
    failures = iter(range(3))
    known = getattr(DeferredMaintenance, step)

    def fail_at_first(*given: object, **named: object) -> object:
        in_worker = threading.current_thread().name == "belvedere views"
        if in_worker and next(failures, None) is not None:
            raise Unavailable("no answer", sqlstate="08006")
        return known(*given, **named)

    def fail_to_record(*given: object) -> None:
        raise Unavailable("no answer", sqlstate="08006")

    with belvedere.connect(tmp_path / "shop.db", autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        if step == "advance_groups":  # neither can what failed be written down
            monkeypatch.setattr(DeferredMaintenance, "record_group_errors", fail_to_record)
        monkeypatch.setattr(DeferredMaintenance, step, fail_at_first)
        with caplog.at_level(logging.ERROR, "belvedere.views"):
            connection.execute(
                "CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred', max_lag = '10 ms')"
                " AS SELECT count(*) AS n FROM t"
            )
            connection.execute("INSERT INTO t VALUES (1)")
            connection.execute("SET freshness = 'any'")
            while connection.execute("SELECT n FROM v").fetchall() != [(1,)]:
                continue  # until the thread has been there
    assert next(failures, None) is None
    assert "the store does not answer" in caplog.text
