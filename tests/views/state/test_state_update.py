"""State, changefeed and watermark of a step are one batch, and one module composes it."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator, Sequence

import pytest

import belvedere
from belvedere.codec import keyspace
from belvedere.kv.batch import Write
from belvedere.txn.contracts import Reader
from belvedere.views.changefeed import entries
from belvedere.views.changefeed.entries import Addition
from belvedere.views.state import state_update
from belvedere.views.state.additions import AdditionRecorder, build_state_row_writes
from belvedere.views.state.backfill_progress import BackfillProgress, read_backfill_progress
from belvedere.views.state.state_update import (
    ChangefeedStep,
    StateUpdate,
    commit_state_update,
    commit_update_as_additions,
)
from belvedere.views.state.watermarks import read_watermark
from tests.views.sql import Store, opened


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(
            "CREATE TABLE t (id int PRIMARY KEY, v int)",
            "INSERT INTO t VALUES (1, 10), (2, 20)",
            "CREATE MATERIALIZED VIEW kept WITH (keep_changes = '1000') AS SELECT id, v FROM t",
            "CREATE MATERIALIZED VIEW other AS SELECT id, v FROM t",
        )
        yield made


def again(store: Store, reader: Reader, name: str) -> list[Addition]:
    """Once more all that the view's state holds."""
    recorded = AdditionRecorder()
    view = store.view(name)
    store.db.views.registry.get_view_maintainer(reader.catalog, view).backfill_state(
        reader, recorded
    )
    return recorded.additions


class Batches:
    """Commits that keep what they are given to write."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.batches: list[Sequence[Write]] = []
        self.additions: list[Addition] = []

    def derive(
        self, make: Callable[[Reader], Sequence[Write]], unread: object = (), cleared: object = ()
    ) -> None:
        self.batches.append(make(self.reader))

    def write_additions(
        self, make: Callable[[Reader], tuple[Sequence[Write], Sequence[Addition]]]
    ) -> None:
        rows, additions = make(self.reader)
        self.batches.append(rows)
        self.additions += additions


def test_one_batch_holds_state_changefeed_progress_and_watermark(store: Store) -> None:
    views = [store.view("kept"), store.view("other")]
    with store.db.begin() as reader:
        additions = again(store, reader, "kept") + again(store, reader, "other")
        commits = Batches(reader)
        update = StateUpdate(
            additions,
            changefeed=ChangefeedStep(views, 77),
            watermarks={900: 5, 901: None},
            progress={902: BackfillProgress("rows", 1)},
            others=[(b"mine", b"x")],
        )
        assert commit_state_update(commits, lambda newest: update)
        expected = dict(build_state_row_writes(reader, additions))
        (batch,) = commits.batches
    rows = dict(batch)
    assert len(rows) == len(batch), "a row is written once"
    assert {key: rows.pop(key) for key in expected} == expected
    feed = rows.pop(keyspace.stream_key(views[0].id, 77))
    assert feed is not None
    assert keyspace.stream_key(views[1].id, 77) not in rows, "it does not keep its changes"
    assert rows.keys() == {
        keyspace.watermark_key(900),
        keyspace.watermark_key(901),
        state_update.build_progress_write(902, None)[0],
        b"mine",
    }
    assert rows[keyspace.watermark_key(901)] is None


def test_state_that_was_computed_before_is_not_computed_again(store: Store) -> None:
    with store.db.begin() as reader:
        additions = again(store, reader, "other")
        commits = Batches(reader)
        commit_state_update(
            commits, lambda newest: StateUpdate(additions, state_rows=[(b"k", b"v")])
        )
    assert commits.batches == [[(b"k", b"v")]]


def test_an_update_that_no_longer_holds_writes_nothing(store: Store) -> None:
    with store.db.begin() as reader:
        commits = Batches(reader)
        assert not commit_state_update(commits, lambda newest: None)
    assert commits.batches == [()]


def test_state_that_cannot_be_read_yet_is_given_as_additions(store: Store) -> None:
    with store.db.begin() as reader:
        additions = again(store, reader, "other")
        commits = Batches(reader)
        commit_update_as_additions(
            commits, lambda newest: StateUpdate(additions, watermarks={900: 5})
        )
    assert commits.additions == additions
    assert [[key for key, _ in batch] for batch in commits.batches] == [
        [keyspace.watermark_key(900)]
    ]


def test_what_is_written_is_what_the_store_shows(store: Store) -> None:
    update = StateUpdate((), watermarks={900: 5}, progress={900: BackfillProgress("rows", 2)})
    assert commit_state_update(store.db.commits, lambda newest: update)
    with store.db.begin() as reader:
        assert read_watermark(reader, 900) == 5
        assert read_backfill_progress(reader, 900) == BackfillProgress("rows", 2)


def test_nobody_else_composes_changefeed_entries_of_a_step() -> None:
    """Who writes an entry by hand can forget the state or the watermark that goes with it."""
    using = set()
    for found in pkgutil.walk_packages(belvedere.__path__, "belvedere."):
        if ".views" in found.name or ".session" in found.name:
            module = importlib.import_module(found.name)
            if entries.build_changefeed_writes in vars(module).values():
                using.add(module)
    assert using == {entries, state_update}
