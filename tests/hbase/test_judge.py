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
        opened.autocommit = True
        yield opened


def write_notes(tmp_path: Path, *lines: str) -> list[Path]:
    path = tmp_path / "1.notes"
    path.write_text("\n".join(lines))
    return [path]


def test_a_history_as_it_should_be_passes(con: belvedere.Connection, tmp_path: Path) -> None:
    tries = [f"try {id_}" for id_ in range(4)]
    notes = write_notes(tmp_path, *tries, "ack 0", "ack 1", "unknown 2", "no 3")
    assert judge.check_end(con, notes)["in the table"] == 3


@pytest.mark.parametrize(
    ("lines", "finding"),
    [
        (("try 0", "try 1", "try 2", "try 9", "ack 9"), "lost"),
        (("try 0", "try 1", "try 2", "no 1"), "happened all the same"),
        (("try 0", "try 1"), "from nowhere"),
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
        ("UPDATE transfer SET target = 9 WHERE id = 1", "counts twice"),
    ],
)
def test_a_wrong_table_is_found(
    con: belvedere.Connection, tmp_path: Path, harm: str, finding: str
) -> None:
    con.execute(harm)
    notes = write_notes(tmp_path, "try 0", "try 1", "try 2")
    with pytest.raises(AssertionError, match=finding):
        judge.check_end(con, notes)
