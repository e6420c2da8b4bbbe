"""Clients that send only point reads are answered by one thread, as by their own threads."""

from __future__ import annotations

import random
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from belvedere.interfaces.server import client as client_module
from belvedere.interfaces.server.listener import Listener
from belvedere.interfaces.server.read_poller import (
    ANSWER_BYTES_MAX,
    READS_BEFORE,
    PointReader,
    PolledClient,
    ReadPoller,
)
from tests.interfaces.server.conftest import Connect
from tests.interfaces.server.protocol.test_fuzz import message, open_socket, send_garbage, startup
from tests.interfaces.server.protocol.test_prepared_rounds import (
    BINDS,
    INT4,
    ONE,
    TWO,
    RawClient,
    bind,
    raw,
    split_round,
)

__all__ = ["raw"]  # a fixture of its tests, and of these
OpenClient = Callable[[], RawClient]
TEXTS = {
    "point": "SELECT b, c FROM t WHERE a = 1",
    "other value": "SELECT b, c FROM t WHERE a = 2",
    "no row": "SELECT b, c FROM t WHERE a = 77",
    "semicolon": "SELECT b FROM t WHERE a = 3;",
    "constant": "SELECT 1",
    "range": "SELECT * FROM t WHERE a > 1 ORDER BY a",
    "update": "UPDATE t SET c = c + 1 WHERE a = 1",
    "several": "SELECT b FROM t WHERE a = 1; SELECT b FROM t WHERE a = 2",
    "too large": "SELECT b FROM t WHERE a = 99999999999999999999",
    "no number": "SELECT b FROM t WHERE a = 'x'",
    "error": "SELECT 1 / 0",
    "syntax": "SELEC 1",
    "empty": "",
    "set": "SET timezone = 'Asia/Tokyo'",
    "begin and end": "BEGIN; SELECT b FROM t WHERE a = 1; COMMIT",
    "listen": "LISTEN news",
    "notify": "NOTIFY news, 'hello'",
    "point again": "SELECT b, c FROM t WHERE a = 1",
}


class Lendings:
    """What the pollers of a test do: who is lent, and how often."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.changed = threading.Condition()
        lend = ReadPoller.lend

        def lend_and_count(poller: ReadPoller, client: PolledClient) -> None:
            with self.changed:
                self.count += 1
                self.changed.notify_all()
            lend(poller, client)

        monkeypatch.setattr(ReadPoller, "lend", lend_and_count)

    def await_count(self, count: int) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.count >= count, 30)


@pytest.fixture
def lendings(monkeypatch: pytest.MonkeyPatch) -> Lendings:
    return Lendings(monkeypatch)


@pytest.fixture
def always(lendings: Lendings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lendings]:
    """Every client is lent whenever it may be."""
    monkeypatch.setattr(client_module, "READS_BEFORE", 0)
    monkeypatch.setattr(ReadPoller, "note_reader", lambda *_: True)
    yield lendings
    assert lendings.count


def ask_text(client: RawClient, text: str) -> list[bytes]:
    return client.ask(message(b"Q", text.encode() + b"\0"))


def read_point(client: RawClient, key: bytes = ONE) -> list[bytes]:
    return client.ask(split_round(bind("point", [key], [1]))[0])


@pytest.mark.parametrize("name", BINDS)
def test_rounds_have_the_same_answers(
    raw: OpenClient, name: str, monkeypatch: pytest.MonkeyPatch, lendings: Lendings
) -> None:
    usual = [raw().ask(data) for data in split_round(BINDS[name])]
    with monkeypatch.context() as patched:
        patched.setattr(client_module, "READS_BEFORE", 0)
        patched.setattr(ReadPoller, "note_reader", lambda *_: True)
        client = raw()
        assert [client.ask(split_round(BINDS[name])[0]) for _ in range(3)][2] == usual[0]
        assert [client.ask(split_round(BINDS[name])[1]) for _ in range(2)][1] == usual[1]
    assert lendings.count


def test_texts_have_the_same_answers(
    raw: OpenClient, monkeypatch: pytest.MonkeyPatch, lendings: Lendings
) -> None:
    client = raw()
    usual = [ask_text(client, text) for text in [*TEXTS.values()] * 3]
    ask_text(client, "UPDATE t SET c = c - 3 WHERE a = 1")
    with monkeypatch.context() as patched:
        patched.setattr(client_module, "READS_BEFORE", 0)
        patched.setattr(ReadPoller, "note_reader", lambda *_: True)
        other = raw()
        found = [ask_text(other, text) for text in [*TEXTS.values()] * 3]
    assert lendings.count
    for name, one, another in zip([*TEXTS] * 3, usual, found):
        assert without_process(one) == without_process(another), name


def without_process(answer: list[bytes]) -> list[bytes]:
    """Notifications begin with the number of the session."""
    return [one[:5] + one[9:] if one[:1] == b"A" else one for one in answer]


def test_only_clients_of_point_reads_are_lent_and_only_several(
    raw: OpenClient, lendings: Lendings
) -> None:
    one, other = raw(), raw()
    for _ in range(3 * READS_BEFORE):
        read_point(one)
    for _ in range(3 * READS_BEFORE):
        read_point(other)
        ask_text(other, "UPDATE t SET c = 1 WHERE a = 3")
    assert lendings.count == 0
    for _ in range(READS_BEFORE):
        read_point(other)
    lendings.await_count(1)
    read_point(one)
    lendings.await_count(2)


def test_the_poller_answers_point_reads_itself(
    raw: OpenClient, always: Lendings, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads = set()
    answer = PointReader.answer_round

    def answer_and_note(self: PointReader, *given: object) -> bytes | None:
        threads.add(threading.current_thread().name)
        return answer(self, *given)  # type: ignore[arg-type]

    clients = [raw(), raw()]
    for client in clients:
        read_point(client)
    monkeypatch.setattr(PointReader, "answer_round", answer_and_note)
    for _ in range(3):
        for client in clients:
            read_point(client, TWO)
    assert threads == {"read poller"}


def test_a_client_that_does_not_read_holds_nobody_up(
    raw: OpenClient, connect: Connect, always: Lendings
) -> None:
    connect().execute("UPDATE t SET b = repeat('x', 30000) WHERE a = 1")
    slow, other = raw(), raw()
    slow.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    request = split_round(bind("point", [ONE], [1]))[0]
    expected = slow.ask(request)
    sent = 0
    # It sends requests until an answer is stuck, which is when one of them is not taken any more.
    slow.connection.setblocking(False)
    while send_whole(slow.connection, request):
        sent += 1
        if sent % 16 == 0:
            assert len(read_point(other, TWO)) == 5
    for _ in range(20):
        assert len(read_point(other, TWO)) == 5
    slow.connection.settimeout(30)
    for _ in range(sent):
        assert slow.receive_answer() == expected


def send_whole(connection: socket.socket, data: bytes) -> bool:
    try:
        return connection.send(data) == len(data)
    except BlockingIOError:
        return False


def test_a_long_answer_is_not_the_pollers(
    raw: OpenClient, connect: Connect, always: Lendings
) -> None:
    connect().execute("UPDATE t SET b = repeat('x', %s) WHERE a = 1", (ANSWER_BYTES_MAX,))
    client = raw()
    before = always.count
    for number in range(3):
        assert len(read_point(client)[2]) > ANSWER_BYTES_MAX
        always.await_count(before + number)


def test_halves_of_a_request_are_answered(raw: OpenClient, always: Lendings) -> None:
    client = raw()
    request = split_round(bind("point", [ONE], [1]))[0]
    expected = client.ask(request)
    for end in (1, 4, 20, len(request) - 1):
        client.connection.sendall(request[:end])
        other = raw()
        assert len(read_point(other)) == 5
        assert client.ask(request[end:]) == expected
    assert client.ask(request + request) == expected
    assert client.receive_answer() == expected


def test_reads_follow_changes_of_the_table(
    raw: OpenClient, connect: Connect, always: Lendings
) -> None:
    client, con = raw(), connect()
    assert b"one" in read_point(client)[2]
    con.execute("UPDATE t SET b = 'two' WHERE a = 1")
    assert b"two" in read_point(client)[2]
    con.execute("ALTER TABLE t ADD COLUMN d int")
    assert b"two" in read_point(client)[2]
    con.execute("ALTER TABLE t DROP COLUMN c")
    assert b"42703" in b"".join(read_point(client))
    con.execute("DROP TABLE t")
    assert b"42P01" in b"".join(read_point(client))


def test_rights_that_were_taken_are_missed_at_once(
    raw: OpenClient, connect: Connect, always: Lendings
) -> None:
    con = connect()
    con.execute("CREATE ROLE reader")
    con.execute("GRANT SELECT ON t TO reader")
    client = raw()
    ask_text(client, "SET ROLE reader")
    client.prepare("own", "SELECT b FROM t WHERE a = $1", (INT4,))
    request = split_round(bind("own", [ONE], [1]))[0]
    for _ in range(3):
        assert b"one" in client.ask(request)[2]
    con.execute("REVOKE SELECT ON t FROM reader")
    assert b"42501" in b"".join(client.ask(request))


def test_a_plan_of_another_role_is_not_used(
    raw: OpenClient, connect: Connect, always: Lendings
) -> None:
    connect().execute("CREATE ROLE nobody")
    client = raw()
    read_point(client)
    ask_text(client, "SET ROLE nobody")
    assert b"42501" in b"".join(read_point(client))
    ask_text(client, "RESET ROLE")
    assert b"one" in read_point(client)[2]


def test_a_transaction_is_not_lent(raw: OpenClient, connect: Connect, always: Lendings) -> None:
    client = raw()
    ask_text(client, "BEGIN ISOLATION LEVEL REPEATABLE READ")
    count = always.count
    before = read_point(client)
    assert read_point(client) == before
    assert always.count == count
    connect().execute("UPDATE t SET b = 'new' WHERE a = 1")
    assert read_point(client) == before
    ask_text(client, "SET idle_in_transaction_session_timeout = 1")
    assert b"25P03" in client.receive_message()


def test_notifications_arrive_after_point_reads(
    raw: OpenClient, connect: Connect, always: Lendings
) -> None:
    client = raw()
    read_point(client)
    ask_text(client, "LISTEN news")
    read_point(client)
    connect().execute("NOTIFY news, 'hello'")
    assert b"hello" in client.receive_message()


def test_a_client_that_vanishes_leaves_nothing(
    raw: OpenClient, listener: Listener, always: Lendings
) -> None:
    clients = [raw(), raw(), raw()]
    for client in clients:
        read_point(client)
    _, *threads, _ = [one.thread for one in listener._clients.values()]  # in order
    clients[0].connection.close()
    reset = struct.pack("ii", 1, 0)
    clients[1].connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
    clients[1].connection.sendall(split_round(bind("point", [ONE], [1]))[0])
    clients[1].connection.close()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert len(read_point(clients[2])) == 5


def test_closing_the_server_ends_lent_clients(
    raw: OpenClient, listener: Listener, always: Lendings
) -> None:
    clients = [raw(), raw()]
    for client in clients:
        read_point(client)
    listener.close()
    for client in clients:
        assert client.connection.recv(100) == b""
    assert listener._poller._thread is not None
    assert not listener._poller._thread.is_alive()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_clients_go_on_when_the_poller_ends(
    raw: OpenClient, always: Lendings, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_thread(self: ReadPoller, descriptor: int) -> None:
        raise SystemExit

    clients = [raw(), raw()]
    monkeypatch.setattr(ReadPoller, "_serve_request", end_thread)
    for _ in range(3):
        for client in clients:
            assert len(read_point(client)) == 5


def test_garbage_ends_its_own_connection_only(
    raw: OpenClient, server: Path, connect: Connect, always: Lendings
) -> None:
    client, user = raw(), connect().info.user
    expected = read_point(client)
    for seed in range(15):
        send_garbage(
            lambda: open_socket(server),
            lambda one: one.sendall(startup(user)),
            random.Random(1000 + seed),
            messages=40,
        )
        assert read_point(client) == expected
