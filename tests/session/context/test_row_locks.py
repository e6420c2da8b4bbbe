"""FOR UPDATE NOWAIT and SKIP LOCKED: what another transaction holds is refused, or left out."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[belvedere.Connection, belvedere.Connection]]:
    """Two connections to one store, the first of which holds the row 2."""
    path = str(tmp_path / "store")
    with belvedere.connect(path, autocommit=True, durability="off") as one:
        one.execute("CREATE TABLE jobs (id int PRIMARY KEY, state text)")
        one.execute("INSERT INTO jobs SELECT i, 'new' FROM generate_series(1, 4) i")
        with belvedere.connect(path, autocommit=True, durability="off") as two:
            one.execute("BEGIN")
            one.execute("SELECT id FROM jobs WHERE id = 2 FOR UPDATE").fetchall()
            yield one, two
            one.rollback()


def test_nowait_refuses_at_once(
    pair: tuple[belvedere.Connection, belvedere.Connection],
) -> None:
    _, two = pair
    two.execute("BEGIN")
    assert two.execute("SELECT id FROM jobs WHERE id = 1 FOR UPDATE NOWAIT").fetchall() == [(1,)]
    with pytest.raises(belvedere.OperationalError) as caught:
        two.execute("SELECT id FROM jobs ORDER BY id FOR UPDATE NOWAIT")
    assert caught.value.sqlstate == "55P03"
    two.rollback()


def test_skip_locked_leaves_out_what_is_held(
    pair: tuple[belvedere.Connection, belvedere.Connection],
) -> None:
    one, two = pair
    two.execute("BEGIN")
    found = two.execute("SELECT id FROM jobs ORDER BY id FOR UPDATE SKIP LOCKED").fetchall()
    assert found == [(1,), (3,), (4,)]
    assert one.execute("SELECT id FROM jobs FOR SHARE SKIP LOCKED").fetchall() == [(2,)]
    two.rollback()
    one.rollback()
    two.execute("BEGIN")
    assert len(two.execute("SELECT id FROM jobs FOR UPDATE SKIP LOCKED").fetchall()) == 4
    two.rollback()


def test_a_queue_hands_every_job_to_one_worker(
    pair: tuple[belvedere.Connection, belvedere.Connection],
) -> None:
    one, two = pair
    take = (
        "UPDATE jobs SET state = 'taken' WHERE id = "
        "(SELECT id FROM jobs WHERE state = 'new' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED) "
        "RETURNING id"
    )
    two.execute("BEGIN")
    assert one.execute(take).fetchall() == [(1,)]
    assert two.execute(take).fetchall() == [(3,)]
    one.commit()
    two.commit()
    assert two.execute("SELECT id FROM jobs WHERE state = 'new' ORDER BY id").fetchall() == [
        (2,),
        (4,),
    ]


def test_lock_table_nowait(pair: tuple[belvedere.Connection, belvedere.Connection]) -> None:
    one, two = pair
    one.execute("LOCK TABLE jobs IN EXCLUSIVE MODE")
    two.execute("BEGIN")
    with pytest.raises(belvedere.OperationalError) as caught:
        two.execute("LOCK TABLE jobs IN SHARE MODE NOWAIT")
    assert caught.value.sqlstate == "55P03"
    two.rollback()
