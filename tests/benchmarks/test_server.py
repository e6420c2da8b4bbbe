"""The server beside PostgreSQL: everything is measured, and both answer the same."""

from __future__ import annotations

import pytest

from belvedere.benchmarks import server
from belvedere.benchmarks.report.postgres_peer import postgres_connection


def test_everything_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "ROUNDS", 1)
    monkeypatch.setattr(server, "CALLS", 10)
    monkeypatch.setattr(server, "PGBENCH_S", 1)
    report = server.run(2_000, seed=1)
    assert not report.absent
    names = [figure.name for figure in report.figures]
    assert len(names) == 8
    assert "pgbench -S, 8 clients" in names
    assert all(figure.value > 0 and figure.baseline and figure.goal for figure in report.figures)


def test_both_servers_answer_the_same() -> None:
    with postgres_connection(durable=True) as theirs, server.open_server() as ours:
        assert theirs is not None
        found = []
        for one in (server.Server(ours, server.BY_VIEW), server.Server(theirs, server.BY_JOIN)):
            server.load_tables(one, 200)
            if one.connection is ours:
                ours.execute(f"CREATE MATERIALIZED VIEW sold AS {server.JOIN}")
            server.run_each(server.UPDATE, [3, 3, 5], True, one)
            found.append(
                [
                    one.connection.execute("SELECT * FROM items ORDER BY id").fetchall(),
                    [one.connection.execute(one.by_key, (key,)).fetchall() for key in range(5)],
                ]
            )
        assert found[0] == found[1]
        assert found[0][1][0]
