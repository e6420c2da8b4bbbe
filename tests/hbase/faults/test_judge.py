"""The judge of the fault runs finds what it is there for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from tests.hbase.faults import judge, writer


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        judge.make_tables(opened)
        opened.autocommit = False
        for id_ in range(3):
            assert writer.attempt_transfer(opened, id_, id_, id_ + 1) == "ack"
        assert writer.attempt_order(opened, 3, 1, 2) == "ack"
        opened.autocommit = True
        yield opened


TRIES = tuple(f"try {id_}" for id_ in range(4))


def write_notes(tmp_path: Path, *lines: str) -> list[Path]:
    """Notes of one writer; a line without a time is a second later than the one before it."""
    path = tmp_path / "1.notes"
    timed = [line if line.count(" ") == 2 else f"{line} {at}" for at, line in enumerate(lines)]
    path.write_text("\n".join(timed))
    return [path]


def test_a_history_as_it_should_be_passes(con: belvedere.Connection, tmp_path: Path) -> None:
    notes = write_notes(tmp_path, *TRIES, "try 4", "ack 0", "ack 1", "unknown 2", "ack 3", "no 4")
    assert judge.check_end(con, notes)["in the tables"] == 4


@pytest.mark.parametrize(
    ("lines", "finding"),
    [
        ((*TRIES, "try 9", "ack 9"), "lost"),
        ((*TRIES, "no 1"), "happened all the same"),
        (("try 0", "try 1", "try 2"), "from nowhere"),
        (("try 2", "ack 2", "try 1", "try 0", "try 3"), "reordered: 1"),
    ],
)
def test_a_wrong_answer_is_found(
    con: belvedere.Connection, tmp_path: Path, lines: tuple[str, ...], finding: str
) -> None:
    with pytest.raises(AssertionError, match=finding):
        judge.check_end(con, write_notes(tmp_path, *lines))


@pytest.mark.parametrize(
    ("harm", "finding"),
    [
        ("UPDATE account SET balance = balance + 1 WHERE id = 5", "money"),
        ("UPDATE counter SET n = n + 1", "half a transfer"),
        ("DELETE FROM transfer WHERE id = 1", "half a transfer"),
        ("DELETE FROM line WHERE number = 1", "half an order"),
        ("UPDATE transfer SET target = 9 WHERE id = 1", "counts twice"),
        ("UPDATE transfer SET turn = 2 WHERE id = 0", "a turn twice"),
    ],
)
def test_a_wrong_table_is_found(
    con: belvedere.Connection, tmp_path: Path, harm: str, finding: str
) -> None:
    con.execute(harm)
    notes = write_notes(tmp_path, *TRIES)
    with pytest.raises(AssertionError, match=finding):
        judge.check_end(con, notes)
