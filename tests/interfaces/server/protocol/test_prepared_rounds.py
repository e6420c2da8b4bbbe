"""Bind to Sync in one packet are answered at once, with the same bytes as one by one."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from belvedere.interfaces.server import client as client_module
from belvedere.interfaces.server.client import Client
from belvedere.interfaces.server.messages import BodyReader
from tests.interfaces.server.conftest import Connect
from tests.interfaces.server.protocol.test_fuzz import message, open_socket, startup

DESCRIBE, EXECUTE, SYNC = message(b"D", b"P\0"), message(b"E", bytes(5)), message(b"S", b"")
FLUSH = message(b"H", b"")
INT4, INT8, TEXT = 23, 20, 25


class RawClient:
    """A connection that sends bytes and receives messages."""

    def __init__(self, directory: Path, user: str) -> None:
        self.connection = open_socket(directory)
        self.connection.sendall(startup(user))
        self._buffer = b""
        self.greeting = self.receive_answer()

    def receive_message(self) -> bytes:
        while len(self._buffer) < 5 or len(self._buffer) < self._message_end():
            data = self.connection.recv(65536)
            if not data:
                raise ConnectionError
            self._buffer += data
        end = self._message_end()
        found, self._buffer = self._buffer[:end], self._buffer[end:]
        return found

    def _message_end(self) -> int:
        return 1 + int(struct.unpack_from("!I", self._buffer, 1)[0])

    def receive_answer(self) -> list[bytes]:
        """Messages to ReadyForQuery. Positions differ from connection to connection."""
        found = []
        while not found or found[-1][:1] != b"Z":
            one = self.receive_message()
            if b"belvedere.token" not in one:
                found.append(one)
        return found

    def ask(self, data: bytes) -> list[bytes]:
        self.connection.sendall(data)
        return self.receive_answer()

    def prepare(self, name: str, text: str, types: Sequence[int]) -> None:
        oids = struct.pack(f"!H{len(types)}I", len(types), *types)
        words = f"{name}\0{text}\0".encode()
        answer = self.ask(message(b"P", words + oids) + SYNC)
        assert answer[0][:1] == b"1", answer


def bind(
    name: str,
    values: Sequence[bytes | None],
    codes: Sequence[int] = (),
    results: Sequence[int] = (),
    portal: str = "",
) -> bytes:
    body = f"{portal}\0{name}\0".encode() + struct.pack(f"!H{len(codes)}H", len(codes), *codes)
    body += struct.pack("!H", len(values))
    for value in values:
        body += b"\xff" * 4 if value is None else struct.pack("!I", len(value)) + value
    return message(b"B", body + struct.pack(f"!H{len(results)}H", len(results), *results))


STATEMENTS = {
    "point": ("SELECT b, c FROM t WHERE a = $1", (INT4,)),
    "range": ("SELECT * FROM t WHERE a > $1 ORDER BY a", (INT4,)),
    "update": ("UPDATE t SET b = $2 WHERE a = $1", (INT4, TEXT)),
    "returning": ("UPDATE t SET b = $1 WHERE a = 2 RETURNING a, b", (TEXT,)),
    "insert": ("INSERT INTO t VALUES ($1, 'again', 1)", (INT4,)),
    "divide": ("SELECT 1 / $1", (INT4,)),
    "echo": ("SELECT $1, $2", (TEXT, INT8)),
    "none": ("SELECT count(*) FROM t", ()),
    "begin": ("BEGIN", ()),
    "empty": ("", ()),
}
ONE, TWO = struct.pack("!i", 1), struct.pack("!i", 2)
TEXTS_OF_INTEGERS = (
    "001",
    "-1",
    "+1",
    " 1 ",
    "0x1",
    "0_1",
    "2147483648",
    "99999999999999999999",
    "٣",
)
BINDS = {
    "binary": bind("point", [ONE], [1]),
    "other value": bind("point", [TWO], [1]),
    "text": bind("point", [b"1"]),
    "binary result": bind("point", [b"1"], [], [1]),
    "a format each": bind("point", [b"1"], [0], [1, 0]),
    "null": bind("point", [None], [1]),
    "no row": bind("point", [b"77"]),
    "rows": bind("range", [b"0"]),
    "update": bind("update", [ONE, b"x"], [1, 0]),
    "returning": bind("returning", [b"y"]),
    "duplicate": bind("insert", [b"1"]),
    "error": bind("divide", [b"0"]),
    "two values": bind("echo", ["héé".encode(), None]),
    "no encoding": bind("echo", [b"\xff", b"1"]),
    "no parameters": bind("none", []),
    "no plan": bind("begin", []),
    "empty text": bind("empty", []),
    "unknown": bind("missing", []),
    "too many": bind("point", [b"1", b"2"]),
    "too short": bind("point", [b"\0\0"], [1]),
    "no number": bind("point", [b"one"]),
    **{text: bind("point", [text.encode()]) for text in TEXTS_OF_INTEGERS},
    "format 2": bind("point", [b"1"], [2]),
    "formats": bind("point", [b"1"], [], [0, 0, 0]),
    "portal": bind("point", [b"1"], portal="p"),
}


@pytest.fixture
def raw(server: Path, connect: Connect) -> Iterator[Callable[[], RawClient]]:
    """Opens clients that have prepared `STATEMENTS`."""
    con = connect()
    con.execute("CREATE TABLE t (a int PRIMARY KEY, b text, c bigint)")
    con.execute("INSERT INTO t VALUES (1, 'one', 10), (2, NULL, NULL), (3, 'three', 30)")
    opened: list[socket.socket] = []

    def open_client() -> RawClient:
        client = RawClient(server, con.info.user)
        opened.append(client.connection)
        for name, (text, types) in STATEMENTS.items():
            client.prepare(name, text, types)
        return client

    yield open_client
    for one in opened:
        one.close()


def split_round(first: bytes, described: bool = True) -> tuple[bytes, bytes]:
    """A round, and the same that is none: a Flush changes nothing of what it says."""
    rest = (DESCRIBE if described else b"") + EXECUTE + SYNC
    return first + rest, first + FLUSH + rest


@pytest.mark.parametrize("name", BINDS)
@pytest.mark.parametrize("described", [True, False])
@pytest.mark.parametrize("before", [b"", b"BEGIN", b"BEGIN; SELECT 1/0"], ids=str)
def test_answers_are_the_same_bytes(
    raw: Callable[[], RawClient], name: str, described: bool, before: bytes
) -> None:
    answers = [
        answer_in_transactions(raw(), data, before) for data in split_round(BINDS[name], described)
    ]
    assert answers[0] == answers[1]


def answer_in_transactions(client: RawClient, data: bytes, before: bytes) -> list[list[bytes]]:
    """Three answers, each after the text; then to an Execute of the portal that is left."""
    found = []
    for _ in range(3):
        if before:
            client.ask(message(b"Q", before + b"\0"))
        found.append(client.ask(data))
        if before:
            found.append(client.ask(EXECUTE + SYNC))
            client.ask(message(b"Q", b"ROLLBACK\0"))
    return found


def test_a_round_is_not_read_message_by_message(
    raw: Callable[[], RawClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = raw()

    def refuse(self: BodyReader, count: int) -> bytes:
        raise AssertionError

    client.ask(split_round(BINDS["binary"])[0])
    monkeypatch.setattr(BodyReader, "read_bytes", refuse)
    monkeypatch.setattr(Client, "_handle_execute", refuse)
    answer = client.ask(split_round(BINDS["other value"])[0])
    assert [one[:1] for one in answer] == [b"2", b"T", b"D", b"C", b"Z"]


def test_damaged_rounds_are_answered_as_their_messages(raw: Callable[[], RawClient]) -> None:
    chosen = random.Random(1)
    one, other = raw(), raw()
    good = BINDS["binary"]
    one.ask(split_round(good)[0])
    for _ in range(300):
        damaged = bytearray(good)
        # Not its length: what follows would be taken for a part of it.
        damaged[chosen.randrange(5, len(good))] = chosen.randrange(256)
        at_once, one_by_one = split_round(bytes(damaged))
        assert one.ask(at_once) == other.ask(one_by_one), bytes(damaged)


def test_a_wrong_length_of_bind_is_no_round(raw: Callable[[], RawClient]) -> None:
    client = raw()
    good = split_round(BINDS["binary"])[0]
    client.ask(good)
    damaged = good[:4] + bytes([good[4] + 1]) + good[5:]
    client.connection.sendall(damaged)
    client.connection.shutdown(socket.SHUT_WR)
    answer = client.receive_message()
    assert answer[:1] == b"E"
    assert b"08P01" in answer


def test_a_statement_prepared_anew_has_new_rounds(raw: Callable[[], RawClient]) -> None:
    client = raw()
    client.prepare("", "SELECT $1 + 1", (INT4,))
    at_once = split_round(bind("", [ONE], [1]))[0]
    assert b"\0\0\0\x012" in client.ask(at_once)[2]
    client.prepare("", "SELECT $1 + 2", (INT4,))
    assert b"\0\0\0\x013" in client.ask(at_once)[2]
    client.ask(message(b"C", b"S\0") + SYNC)
    assert b"26000" in client.ask(at_once)[0]


def test_a_round_after_an_execute_without_sync_shares_its_transaction(
    raw: Callable[[], RawClient], connect: Connect
) -> None:
    client = raw()
    first = bind("update", [ONE, b"new"], [1, 0]) + EXECUTE
    client.connection.sendall(first + FLUSH)
    while client.receive_message()[:1] != b"C":
        pass
    assert connect().execute("SELECT b FROM t WHERE a = 1").fetchone() == ("one",)
    assert b"22012" in client.ask(split_round(BINDS["error"])[0])[2]
    client.connection.sendall(first + FLUSH)
    while client.receive_message()[:1] != b"C":
        pass
    client.ask(split_round(BINDS["binary"])[0])
    assert connect().execute("SELECT b FROM t WHERE a = 1").fetchone() == ("new",)


def test_a_bind_of_a_named_portal_is_no_round(raw: Callable[[], RawClient]) -> None:
    """Its statement is the unnamed one, so that the names together look like a round's."""
    client = raw()
    client.prepare("", "SELECT $1 + 1", (INT4,))
    answer = client.ask(bind("", [b"7"], portal="p") + EXECUTE + SYNC)
    assert b"34000" in answer[1]


def test_a_failed_pipeline_skips_a_round(raw: Callable[[], RawClient]) -> None:
    client = raw()
    client.connection.sendall(BINDS["error"] + EXECUTE + FLUSH)
    while client.receive_message()[:1] != b"E":
        pass
    assert [one[:1] for one in client.ask(split_round(BINDS["binary"])[0])] == [b"Z"]


# -- statements without a name ---------------------------------------------------------------------


def parse(text: str, types: Sequence[int] = ()) -> bytes:
    oids = struct.pack(f"!H{len(types)}I", len(types), *types)
    return message(b"P", f"\0{text}\0".encode() + oids)


UNNAMED = {
    "point": parse(*STATEMENTS["point"]) + bind("", [ONE], [1]),
    "types by the statement": parse("SELECT b FROM t WHERE a = $1") + bind("", [b"2"]),
    "binary result": parse(*STATEMENTS["point"]) + bind("", [b"1"], [], [1]),
    "rows": parse(*STATEMENTS["range"]) + bind("", [b"0"]),
    "update": parse(*STATEMENTS["update"]) + bind("", [ONE, b"x"], [1, 0]),
    "duplicate": parse(*STATEMENTS["insert"]) + bind("", [b"1"]),
    "error": parse(*STATEMENTS["divide"]) + bind("", [b"0"]),
    "begin": parse("BEGIN") + bind("", []),
    "empty": parse("") + bind("", []),
    "syntax": parse("SELEC 1") + bind("", []),
    "no table": parse("SELECT * FROM missing") + bind("", []),
    "another name": parse("SELECT 7") + bind("point", [b"1"]),
    "too many": parse("SELECT 7") + bind("", [b"1"]),
    "named portal": parse("SELECT 7") + bind("", [], portal="p"),
}


@pytest.mark.parametrize("first", UNNAMED.values(), ids=UNNAMED)
@pytest.mark.parametrize("middle", [DESCRIBE, b""], ids=["described", "not described"])
def test_a_parse_before_a_round_gives_the_same_bytes(
    raw: Callable[[], RawClient], first: bytes, middle: bytes
) -> None:
    at_once, one_by_one = raw(), raw()
    for _ in range(3):
        expected = one_by_one.ask(first + middle + EXECUTE + FLUSH + SYNC)
        assert at_once.ask(first + middle + EXECUTE + SYNC) == expected
        for client in (at_once, one_by_one):
            client.ask(message(b"Q", b"ROLLBACK\0"))


def test_a_repeated_parse_is_not_bound_again(
    raw: Callable[[], RawClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    client = raw()
    data = UNNAMED["point"] + DESCRIBE + EXECUTE + SYNC
    expected = client.ask(data)
    monkeypatch.delattr(Client, "_handle_bind")
    monkeypatch.setattr(client_module, "prepare_text", None)
    assert client.ask(data) == expected


def test_a_repeated_parse_follows_the_catalog(raw: Callable[[], RawClient]) -> None:
    client = raw()
    data = parse("SELECT * FROM t WHERE a = $1") + bind("", [b"1"]) + DESCRIBE + EXECUTE + SYNC
    before = [client.ask(data) for _ in range(2)][1]
    client.ask(message(b"Q", b"ALTER TABLE t ADD COLUMN d int DEFAULT 5\0"))
    after = [client.ask(data) for _ in range(3)]
    assert before[2][5:7] == struct.pack("!H", 3)
    assert {one[2][5:7] for one in after} == {struct.pack("!H", 4)}


def test_a_repeated_parse_fails_in_a_failed_transaction(raw: Callable[[], RawClient]) -> None:
    client = raw()
    data = UNNAMED["point"] + DESCRIBE + EXECUTE + SYNC
    client.ask(data)
    client.ask(message(b"Q", b"BEGIN; SELECT 1 / 0\0"))
    found = client.ask(data)
    assert b"C25P02\0" in b"".join(found)
    assert not any(one[:1] == b"D" for one in found)


def test_a_repeated_parse_replaces_the_statement_without_a_name(
    raw: Callable[[], RawClient],
) -> None:
    client = raw()
    texts = [parse(f"SELECT {number} FROM t WHERE a = $1") for number in (7, 8)]
    rest = bind("", [b"1"]) + DESCRIBE + EXECUTE + SYNC
    for _ in range(2):
        for number, text in zip((b"7", b"8"), texts):
            assert client.ask(text + rest)[3].endswith(number)
            assert client.ask(rest)[2].endswith(number)
