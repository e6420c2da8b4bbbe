"""The server beside PostgreSQL: everything is measured, and both answer the same."""

from __future__ import annotations

from typing import Any

import pytest

from belvedere.benchmarks import server, ycsb
from belvedere.benchmarks.report.postgres_peer import postgres_connection
from belvedere.benchmarks.tpcc import over_wire, suite
from belvedere.errors import InvalidInput, Unavailable


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


def url_of(connection: Any) -> str:
    info = connection.info
    return f"postgresql://{info.user}@/{info.dbname}?host={info.host}&port={info.port}"


def test_tpcc_goes_over_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(over_wire, "ROUNDS", 1)
    monkeypatch.setattr(over_wire, "ROUND_TRANSACTIONS", 10)
    monkeypatch.setattr(over_wire, "CLIENTS", 2)
    with server.open_server() as ours:
        report = suite.run(0.02, seed=1, database=url_of(ours))
        assert [figure.name for figure in report.figures] == ["one client", "2 clients"]
        (orders,) = ours.execute("SELECT count(*) FROM orders").fetchone() or ()
        assert orders > 0


def test_ycsb_goes_over_the_wire(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ycsb, "OPERATIONS", 20)
    with server.open_server() as ours:
        report = ycsb.run(50, seed=1, database=url_of(ours))
    assert len(report.figures) == 3 + len(ycsb.MIXES)
    assert all(figure.name.endswith("to PostgreSQL") for figure in report.figures)


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(InvalidInput, match="not the URL of a server"):
        ycsb.run(5, seed=1, database="shop.db")
    with pytest.raises(Unavailable, match="no server at"):
        ycsb.run(5, seed=1, database="postgresql://127.0.0.1:1/shop")
