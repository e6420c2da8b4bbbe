"""Pages read from the bytes of an answer are what Thrift's own decoder makes of it, or are left to
it."""

from __future__ import annotations

import random
import socket
import time
from typing import Any

import pytest
from thriftpy2.protocol import TCyBinaryProtocol
from thriftpy2.transport import TCyMemoryBuffer

from belvedere.kv.cell import Cell, Cells
from belvedere.kv.hbase.connections import GatewayConnection
from belvedere.kv.hbase.page_bytes import PageHeader, unpack_page
from belvedere.kv.hbase.requests import FAMILY, read_cells
from belvedere.kv.hbase.thrift_types import load_types
from belvedere.kv.hbase.url import GatewayAddress
from belvedere.kv.packed_rows import PackedRows

CALL = "getScannerResults"
PREFIX = b"\x10\x00\x00\x00d"
Rows = list[tuple[bytes, Cells]]


def encode_answer(rows: Rows, sequence: int = 1, kind: int = 2) -> bytes:
    types = load_types()
    results = [
        types.TResult(
            row=row,
            columnValues=[
                types.TColumnValue(
                    family=FAMILY, qualifier=cell.column, value=cell.value, timestamp=cell.timestamp
                )
                for cell in cells
            ],
        )
        for row, cells in rows
    ]
    return encode_reply(types.THBaseService.getScannerResults_result(success=results), sequence)


def encode_reply(reply: Any, sequence: int = 1) -> bytes:
    memory = TCyMemoryBuffer()
    protocol = TCyBinaryProtocol(memory)  # type: ignore[no-untyped-call]
    protocol.write_message_begin(CALL, 2, sequence)
    reply.write(protocol)
    protocol.write_message_end()
    return bytes(memory.getvalue())


class Gateway:
    """A connection of which the other end says what it is told to."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            port = listening.getsockname()[1]
            self.connection = GatewayConnection(
                GatewayAddress("127.0.0.1", port), 5.0, time.monotonic
            )
            self.other_end, _ = listening.accept()
        self.connection._sequence = 1
        self.connection.socket.deadline = time.monotonic() + 20

    def receive(self, *pieces: bytes) -> PackedRows | None:
        for piece in pieces:
            self.other_end.sendall(piece)
        return self.connection.receive_page(CALL, PREFIX, FAMILY)

    def receive_by_thrift(self) -> Rows:
        found = self.connection.receive_reply(CALL)
        return [(result.row, read_cells(result)) for result in found]

    def close(self) -> None:
        self.connection.close()
        self.other_end.close()


@pytest.fixture
def gateway() -> Any:
    made = Gateway()
    yield made
    made.close()


def random_rows(chosen: random.Random, count: int) -> Rows:
    """Rows with any of their columns, values of any length, bytes that look like what is around
    them."""
    names = [b"\x00", b"c0", b"c1", b"c12", b"longname"]
    special = [b"\x0b\x00\x01", b"\x00\x00", b"c", b"\x0a\x00\x04", PREFIX, b"\x03\x00\x06"]
    rows: Rows = []
    for number in range(count):
        key = PREFIX + number.to_bytes(4) + chosen.randbytes(chosen.randrange(4))
        kept = [name for name in names if chosen.random() < 0.8] or names[:1]
        values = [
            b"".join(chosen.choices([*special, chosen.randbytes(3), b""], k=chosen.randrange(4)))
            for _ in kept
        ]
        cells = [Cell(name, chosen.randrange(2**62), value) for name, value in zip(kept, values)]
        rows.append((key, tuple(cells)))
    return rows


@pytest.mark.parametrize("seed", range(20))
def test_pages_hold_the_rows_that_were_sent(gateway: Gateway, seed: int) -> None:
    rows = random_rows(random.Random(seed), seed * 7)
    found = gateway.receive(encode_answer(rows))
    assert found is not None
    assert list(found) == rows
    assert [found[at] for at in range(len(rows))] == rows
    assert found[2:5] == rows[2:5]


def test_an_answer_may_come_in_any_pieces(gateway: Gateway) -> None:
    rows = random_rows(random.Random(7), 5)
    answer = encode_answer(rows)
    for size in (1, 3, 50):
        pieces = [answer[at : at + size] for at in range(0, len(answer), size)]
        found = gateway.receive(*pieces)
        assert found is not None
        assert list(found) == rows


def test_fields_of_a_real_gateway_are_skipped(gateway: Gateway) -> None:
    """A type for each cell, and whether a row is stale or partial."""
    rows = [
        (PREFIX + b"1", (Cell(b"c0", 5, b"\x00\x02"),)),
        (PREFIX + b"2", (Cell(b"c0", 6, b"x"),)),
    ]
    answer = encode_answer(rows)
    for cell in (b"\x05", b"\x06"):
        time_field = b"\x0a\x00\x04" + bytes(7) + cell
        answer = answer.replace(
            time_field + b"\x00\x00",
            time_field + b"\x03\x00\x06\x04\x00\x02\x00\x03\x00\x02\x00\x04\x00\x00",
        )
    found = gateway.receive(answer)
    assert found is not None
    assert list(found) == rows


def test_what_looks_like_a_row_inside_a_value_is_left_to_thrift(gateway: Gateway) -> None:
    hidden = b"\x0b\x00\x01\x00\x00\x00\x06" + PREFIX + b"9"
    rows = [(PREFIX + b"1", (Cell(b"c0", 1, hidden),)), (PREFIX + b"2", (Cell(b"c0", 1, b"x"),))]
    assert gateway.receive(encode_answer(rows)) is None
    assert gateway.receive_by_thrift() == rows


def test_tags_of_cells_are_left_to_thrift(gateway: Gateway) -> None:
    rows = [(PREFIX + b"1", (Cell(b"c0", 1, b"x"),))]
    answer = encode_answer(rows)
    time_field = b"\x0a\x00\x04" + (1).to_bytes(8)
    answer = answer.replace(time_field, time_field + b"\x0b\x00\x05\x00\x00\x00\x01t")
    assert gateway.receive(answer) is None
    assert gateway.receive_by_thrift() == rows


def test_an_error_is_left_to_thrift(gateway: Gateway) -> None:
    types = load_types()
    refusal = types.TIOError(message="no such table", canRetry=False)
    answer = encode_reply(types.THBaseService.getScannerResults_result(io=refusal))
    assert gateway.receive(answer) is None
    with pytest.raises(types.TIOError, match="no such table"):
        gateway.receive_by_thrift()


def test_an_answer_to_another_call_is_left_to_thrift(gateway: Gateway) -> None:
    rows = [(PREFIX + b"1", (Cell(b"c0", 1, b"x"),))]
    assert gateway.receive(encode_answer(rows, sequence=9)) is None
    with pytest.raises(Exception, match="not to"):
        gateway.receive_by_thrift()


def test_no_byte_of_a_page_is_taken_for_another() -> None:
    """A page with one byte changed is what Thrift makes of it, or is left to it."""
    rows = random_rows(random.Random(3), 3)
    answer, chosen = encode_answer(rows), random.Random(4)
    header, same = PageHeader(CALL, 1), 0
    for at in range(header.size, len(answer)):
        changed = bytearray(answer)
        changed[at] ^= 1 << chosen.randrange(8)
        found = unpack_page(bytes(changed), header.size, len(rows), PREFIX, FAMILY)
        if found is not None:
            same += 1
            decoded = [(row, tuple(sorted(cells))) for row, cells in decode_by_thrift(changed)]
            assert list(found) == decoded
    assert same > 20


def decode_by_thrift(answer: bytearray) -> Rows:
    protocol = TCyBinaryProtocol(TCyMemoryBuffer(bytes(answer)))  # type: ignore[no-untyped-call]
    protocol.read_message_begin()
    reply = load_types().THBaseService.getScannerResults_result()
    reply.read(protocol)
    return [(result.row, read_cells(result)) for result in reply.success]
