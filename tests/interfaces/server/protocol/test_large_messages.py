"""Messages of any length: what is too long is refused before memory is taken for it."""

from __future__ import annotations

import getpass
import struct
from pathlib import Path

from tests.interfaces.server.conftest import Connect
from tests.interfaces.server.protocol.test_prepared_rounds import RawClient

GIGABYTE = 2**30
DECLARED = 200_000_000
CLIENTS = 20
GROWTH_MAX = 64 * 2**20


def measure_memory() -> int:
    """Bytes of this process, in which the server is, that are in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_a_message_of_a_gigabyte_is_refused_at_once(server: Path, connect: Connect) -> None:
    con = connect()
    for kind in (b"Q", b"P", b"B", b"d", b"p", b"!"):
        client = RawClient(server, getpass.getuser())
        client.connection.sendall(kind + struct.pack("!I", GIGABYTE) + b"SELECT 1")
        assert b"C08P01" in client.receive_message()
        assert client.connection.recv(1) == b""
        client.connection.close()
    assert con.execute("SELECT 1").fetchone() == (1,)


def test_a_length_without_its_data_takes_no_memory(server: Path, connect: Connect) -> None:
    con = connect()
    clients = [RawClient(server, getpass.getuser()) for _ in range(CLIENTS)]
    before = measure_memory()
    for client in clients:
        client.connection.sendall(b"Q" + struct.pack("!I", DECLARED) + b"x" * 1_000)
    assert con.execute("SELECT 1").fetchone() == (1,)
    assert measure_memory() - before < GROWTH_MAX
    for client in clients:
        client.connection.close()


def test_a_statement_of_fifty_megabytes(connect: Connect) -> None:
    con = connect()
    text = "it''s" + "x" * 50_000_000 + "''"
    assert con.execute(f"SELECT length('{text}')").fetchone() == (50_000_005,)
    assert con.execute("SELECT 1" + " " * 50_000_000).fetchone() == (1,)


def test_a_parameter_of_fifty_megabytes(connect: Connect) -> None:
    con = connect()
    assert con.execute("SELECT length(%s)", ["x" * 50_000_000]).fetchone() == (50_000_000,)
