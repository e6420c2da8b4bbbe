"""Boundaries are on the paths that ship: a commit takes the same one, armed or not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from belvedere import failpoints
from belvedere.config import Config, Durability
from belvedere.errors import Unavailable
from belvedere.txn.batch_atomic.commit import BatchCommit
from belvedere.txn.batch_atomic.visibility import Visibility
from tests.views.sql import Store, opened

OF_EVERY_COMMIT = (
    "commit.before_section",
    "commit.before_undo",
    "commit.before_write",
    "commit.after_write",
    "acknowledge.before",
)
OF_DURABLE_COMMITS = (
    *OF_EVERY_COMMIT,
    "sync.before",
    "sync.after",
    "anchor.before_write",
    "anchor.after_write",
    "publish.before",
    "publish.after",
)
SCHEMA = (
    "CREATE TABLE people (id bigint PRIMARY KEY, name text, age bigint)",
    "CREATE INDEX by_name ON people (name)",
    "CREATE MATERIALIZED VIEW ages AS SELECT name, count(*), sum(age) FROM people GROUP BY name",
    "INSERT INTO people VALUES (1, 'a', 1), (2, 'b', 2)",
)
STATEMENTS = {
    "insert": "INSERT INTO people VALUES (3, 'c', 3)",
    "update": "UPDATE people SET age = age + 1 WHERE id = 1",
    "delete": "DELETE FROM people WHERE id = 2",
}
FINAL = {
    "insert": [("a", 1, 1), ("b", 1, 2), ("c", 1, 3)],
    "update": [("a", 1, 2), ("b", 1, 2)],
    "delete": [("a", 1, 1)],
}


@dataclass(slots=True)
class Paths:
    """The functions that commits went through, in order."""

    taken: list[str] = field(default_factory=list)

    def watch(self, patcher: pytest.MonkeyPatch, owner: type, name: str) -> None:
        known: Callable[..., Any] = getattr(owner, name)

        def noting(*given: Any, **named: Any) -> Any:
            self.taken.append(name)
            return known(*given, **named)

        patcher.setattr(owner, name, noting)


@pytest.fixture
def paths(monkeypatch: pytest.MonkeyPatch) -> Paths:
    watched = Paths()
    for name in ("_append_transaction", "_derive_single_row", "_derive_rows", "_run_checks"):
        watched.watch(monkeypatch, BatchCommit, name)
    for name in ("write_batch", "_publish_images", "publish_through"):
        watched.watch(monkeypatch, Visibility, name)
    return watched


@pytest.fixture(params=[Durability.FULL, Durability.OFF])
def config(request: pytest.FixtureRequest) -> Config:
    return Config(durability=request.param)


@contextmanager
def people(path: Path, config: Config) -> Iterator[Store]:
    with opened(path, config) as store:
        store.run(*SCHEMA)
        yield store


def names_of(config: Config) -> tuple[str, ...]:
    return OF_DURABLE_COMMITS if config.durability is Durability.FULL else OF_EVERY_COMMIT


def ages(store: Store) -> list[Any]:
    return [tuple(row) for row in store.run("SELECT * FROM ages ORDER BY name")]


@pytest.mark.parametrize("kind", STATEMENTS)
def test_a_single_row_passes_every_boundary_on_its_own_path(
    tmp_path: Path, config: Config, paths: Paths, kind: str
) -> None:
    with people(tmp_path / "store", config) as store:
        failpoints.arm("commit.before_section", "call", call=lambda: None)
        failpoints.hits.clear()
        paths.taken.clear()
        store.run(STATEMENTS[kind])
        hits = {name: failpoints.hits[name] for name in names_of(config)}
        assert hits == dict.fromkeys(names_of(config), 1)
        assert "_derive_single_row" in paths.taken
        assert "_derive_rows" not in paths.taken
        assert ages(store) == FINAL[kind]


@pytest.mark.parametrize("observed", [False, True], ids=["alone", "beside a snapshot"])
def test_an_armed_commit_takes_the_path_that_it_takes_unarmed(
    tmp_path: Path, config: Config, paths: Paths, observed: bool
) -> None:
    taken = []
    for armed in (False, True):
        with people(tmp_path / str(armed), config) as store:
            if armed:
                failpoints.arm("commit.before_write", "call", call=lambda: None)
            paths.taken.clear()
            with store.db.open_newest_reader() if observed else nullcontext():
                store.run(*STATEMENTS.values(), "UPDATE people SET age = 9")
                store.run("BEGIN", "UPDATE people SET age = 7 WHERE id = 1", "COMMIT")
            taken.append(list(paths.taken))
            failpoints.disarm_all()
    assert taken[0] == taken[1]
    hidden = config.durability is Durability.FULL
    assert ("_publish_images" in taken[0]) is (observed or hidden)


@pytest.mark.parametrize("boundary", OF_EVERY_COMMIT[:3])
def test_a_single_row_that_fails_before_its_write_is_not_there(
    tmp_path: Path, config: Config, boundary: str
) -> None:
    with people(tmp_path / "store", config) as store:
        failpoints.arm(boundary, "raise")
        with pytest.raises(Unavailable):
            store.run(STATEMENTS["insert"])
        failpoints.disarm_all()
        assert ages(store) == [("a", 1, 1), ("b", 1, 2)]
