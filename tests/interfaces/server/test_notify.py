"""LISTEN, NOTIFY and UNLISTEN: delivered at commit, between transactions, as in PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import belvedere
from tests.interfaces.server.conftest import Connect
from tests.oracle.postgres import Postgres

ENDING = "the end"


@pytest.fixture(params=["here", "postgres"])
def connect_to(request: pytest.FixtureRequest) -> Iterator[Connect]:
    """The same history on the server and on PostgreSQL."""
    if request.param == "here":
        yield request.getfixturevalue("connect")
        return
    postgres: Postgres = request.getfixturevalue("postgres")
    opened: list[psycopg.Connection[Any]] = []

    def connect_client(**more: Any) -> psycopg.Connection[Any]:
        opened.append(psycopg.connect(postgres.uri, autocommit=True, **more))
        return opened[-1]

    yield connect_client
    for one in opened:
        one.close()


def receive(listener: psycopg.Connection[Any], other: psycopg.Connection[Any]) -> list[Any]:
    """What the listener gets up to a last notification, for which it has to listen to `last`."""
    other.execute(f"NOTIFY last, '{ENDING}'")
    found = []
    for one in listener.notifies(timeout=60):
        if one.payload == ENDING:
            return found
        found.append((one.channel, one.payload))
    raise AssertionError("the last notification did not come")


def open_pair(connect: Connect) -> tuple[psycopg.Connection[Any], psycopg.Connection[Any]]:
    listener, other = connect(), connect()
    listener.execute("LISTEN last")
    return listener, other


def test_an_idle_listener_gets_what_others_commit(connect_to: Connect) -> None:
    listener, other = open_pair(connect_to)
    listener.execute("LISTEN news")
    other.execute("NOTIFY news, 'first'")
    other.execute("NOTIFY news")
    other.execute("NOTIFY unheard, 'x'")
    other.execute("SELECT pg_notify('news', %s)", ("by a function",))
    assert receive(listener, other) == [("news", "first"), ("news", ""), ("news", "by a function")]


def test_sender_is_told_by_its_process(connect_to: Connect) -> None:
    listener, other = open_pair(connect_to)
    pid = other.execute("SELECT pg_backend_pid()").fetchone()
    other.execute("NOTIFY last")
    (one,) = listener.notifies(timeout=60, stop_after=1)
    assert (one.pid,) == pid == (other.info.backend_pid,)


def test_a_transaction_notifies_when_it_commits_and_each_text_once(connect_to: Connect) -> None:
    listener, other = open_pair(connect_to)
    listener.execute("LISTEN news")
    with other.transaction():
        other.execute("NOTIFY news, 'a'")
        other.execute("NOTIFY news, 'b'")
        other.execute("NOTIFY news, 'a'")
        other.execute("SELECT pg_notify('news', 'c')")
        assert receive(listener, connect_to()) == []
        with other.transaction():
            other.execute("NOTIFY news, 'taken back'")
            raise psycopg.Rollback
        other.execute("NOTIFY news, 'd'")
    with other.transaction():
        other.execute("NOTIFY news, 'rolled back'")
        raise psycopg.Rollback
    expected = [("news", text) for text in "abcd"]
    assert receive(listener, other) == expected


def test_a_listener_in_a_transaction_is_told_after_it(connect_to: Connect) -> None:
    listener, other = open_pair(connect_to)
    listener.execute("LISTEN news")
    told: list[str] = []
    listener.add_notify_handler(lambda one: told.append(one.payload))
    with listener.transaction():
        listener.execute("SELECT 1")
        other.execute("NOTIFY news, 'meanwhile'")
        listener.execute("SELECT 1")
        assert told == []
    assert told == ["meanwhile"]


def test_a_session_hears_itself(connect_to: Connect) -> None:
    listener, _ = open_pair(connect_to)
    told: list[str] = []
    listener.add_notify_handler(lambda one: told.append(one.payload))
    with listener.transaction():
        listener.execute("LISTEN own")
        listener.execute("NOTIFY own, 'x'")
    assert told == ["x"]


def test_listening_ends_by_unlisten_rollback_and_discard(connect_to: Connect) -> None:
    listener, other = open_pair(connect_to)
    with listener.transaction():
        listener.execute("LISTEN news")
        raise psycopg.Rollback
    other.execute("NOTIFY news, 'not yet'")
    listener.execute("LISTEN news")
    listener.execute("LISTEN news")
    other.execute("NOTIFY news, 'once'")
    assert receive(listener, other) == [("news", "once")]
    listener.execute("UNLISTEN news")
    other.execute("NOTIFY news, 'no more'")
    assert receive(listener, other) == []
    for ending in ("UNLISTEN *", "DISCARD ALL"):
        listener.execute("LISTEN news")
        listener.execute(ending)
        other.execute("NOTIFY news, 'no more'")
        listener.execute("LISTEN last")
        assert receive(listener, other) == []


@pytest.mark.parametrize(
    "call",
    ["('', 'x')", "(NULL, 'x')", f"('{'c' * 64}', 'x')", f"('c', '{'p' * 8000}')"],
)
def test_bad_notifications_are_refused(connect_to: Connect, call: str) -> None:
    with pytest.raises(psycopg.errors.InvalidParameterValue):
        connect_to().execute(f"SELECT pg_notify{call}")


def test_a_listener_that_is_gone_is_forgotten(connect: Connect) -> None:
    listener, other = open_pair(connect)
    listener.close()
    for number in range(10):
        other.execute(f"NOTIFY last, '{number}'")
    assert other.execute("SELECT 1").fetchone() == (1,)


def test_the_embedded_door_notifies_and_does_not_listen() -> None:
    with belvedere.connect(":memory:") as connection:
        connection.execute("NOTIFY news, 'x'")
        with pytest.raises(belvedere.NotSupportedError, match="LISTEN"):
            connection.execute("LISTEN news")
