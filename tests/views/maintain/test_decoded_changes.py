"""Rows of a batch are decoded once, however many views take them in."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from belvedere.txn.contracts import RowChange
from belvedere.views.codegen.lookup_chain import LookupChain
from belvedere.views.maintain import decoded_changes
from belvedere.views.maintain.decoded_changes import DeletedAndInserted
from tests.views.sql import Store, opened

VIEWS = 3


def _made(store: Store, columns: str) -> None:
    store.run(
        "CREATE TABLE t (id int PRIMARY KEY, g int, v int, w int)",
        *[
            f"CREATE MATERIALIZED VIEW v{i} WITH (maintenance = 'deferred', refresh_every = '1 d')"
            f" AS SELECT g, count(*) AS n, sum({columns} + {i}) AS s FROM t GROUP BY g"
            for i in range(VIEWS)
        ],
        "INSERT INTO t SELECT i, i % 3, i, i FROM generate_series(1, 20) s(i)",
    )


def _step(store: Store) -> None:
    driver = store.db.views.deferred
    driver.advance_groups(list(driver.get_schedules_by_group()))


@pytest.fixture
def decodes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many changes were decoded, each time that some were."""
    found: list[int] = []
    usual = decoded_changes._split_and_project_changes

    def counted(changes: Sequence[RowChange], leg: LookupChain) -> DeletedAndInserted:
        found.append(len(changes))
        return usual(changes, leg)

    monkeypatch.setattr(decoded_changes, "_split_and_project_changes", counted)
    return found


def test_views_that_use_the_same_columns_share_what_is_decoded(decodes: list[int]) -> None:
    with opened() as store:
        _made(store, "v")
        _step(store)
        _step(store)  # all of them are one unit by now
        decodes.clear()
        store.run("UPDATE t SET v = v + 1 WHERE id <= 7")
        _step(store)
        assert decodes == [7]
        assert all(store.verified().values())


def test_views_of_other_columns_are_given_their_own(decodes: list[int]) -> None:
    with opened() as store:
        _made(store, "v")
        store.run(
            "CREATE MATERIALIZED VIEW other WITH (maintenance = 'deferred', refresh_every = '1 d')"
            " AS SELECT w, count(*) AS n FROM t GROUP BY w"
        )
        _step(store)
        _step(store)
        decodes.clear()
        store.run("UPDATE t SET w = 5 WHERE id = 1", "DELETE FROM t WHERE id = 2")
        _step(store)
        assert decodes == [2, 2]
        assert all(store.verified().values())


def test_tables_of_one_form_are_kept_apart() -> None:
    with opened() as store:
        store.run(
            "CREATE TABLE a (id int PRIMARY KEY, g int)",
            "CREATE TABLE b (id int PRIMARY KEY, g int)",
            "CREATE MATERIALIZED VIEW united WITH (maintenance = 'deferred', refresh_every = '1 d')"
            " AS SELECT g, count(*) AS n FROM (SELECT g FROM a UNION ALL SELECT g FROM b) u"
            " GROUP BY g",
            "INSERT INTO a VALUES (1, 1), (2, 1)",
            "INSERT INTO b VALUES (1, 2), (2, 3), (3, 3)",
            "REFRESH MATERIALIZED VIEW united",
        )
        assert store.run("SELECT g, n FROM united ORDER BY g") == [(1, 2), (2, 1), (3, 2)]
        store.run("UPDATE a SET g = 2 WHERE id = 1", "DELETE FROM b WHERE id = 1")
        store.run("REFRESH MATERIALIZED VIEW united")
        assert all(store.verified().values())
