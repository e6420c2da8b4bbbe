"""Backfill by Spark: many views in one job, with concurrent writers, restarted after a failure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import belvedere
from belvedere.catalog.model import View
from belvedere.database import Database
from belvedere.errors import InvalidInput
from belvedere.interfaces.dbapi import Connection, OperationalError
from belvedere.pipeline.jobs import backfill, verify
from belvedere.pipeline.store.checkpoint import ensure_jobs_directory
from belvedere.pipeline.store.client import Store
from belvedere.pipeline.store.compiled_views import get_compiled_views
from belvedere.pipeline.store.tables import fetch_encoded_catalog
from tests.pipeline.definitions import DEFINITIONS
from tests.pipeline.spark_laws import PREFIX_BYTES
from tests.properties.views.law import stored_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

VIEWS = {
    "totals": "SELECT kind, count(*) AS n, sum(price) AS total, avg(weight) AS w FROM items"
    " GROUP BY kind",
    "joined": "SELECT i.id, k.name FROM items i JOIN kinds k ON k.id = i.kind WHERE i.price > 2",
    "ranked": "SELECT kind, id, rank() OVER (PARTITION BY kind ORDER BY price) AS r FROM items",
    "empty": "SELECT id FROM items WHERE id < 0",
}


@pytest.fixture
def items(connection: Connection) -> Connection:
    connection.execute("CREATE TABLE kinds (id int PRIMARY KEY, name text)")
    connection.execute(
        "CREATE TABLE items (id int PRIMARY KEY, kind int, price numeric(8,2), weight real)"
    )
    for i in range(6):
        connection.execute("INSERT INTO kinds VALUES (?, ?)", (i, f"kind {i}"))
    for i in range(60):
        connection.execute("INSERT INTO items VALUES (?, ?, ?, ?)", (i, i % 7, i % 11, i / 3))
    for number, (name, query) in enumerate(VIEWS.items()):
        kind = "deferred" if number % 2 else "immediate"
        connection.execute(
            f"CREATE MATERIALIZED VIEW {name}"
            f" WITH (maintenance = '{kind}', backfill = 'later') AS {query}"
        )
    return connection


def rows(connection: Connection, text: str) -> list[Any]:
    return sorted(connection.execute(text).fetchall(), key=repr)


def require_right(connection: Connection) -> None:
    for name, query in VIEWS.items():
        assert rows(connection, f"SELECT * FROM {name}") == rows(connection, query), name


def test_views_are_filled_in_one_job_beside_writers(
    spark: SparkSession, shop: Path, items: Connection
) -> None:
    with pytest.raises(OperationalError, match="cannot be read"):
        items.execute("SELECT * FROM totals").fetchall()
    wrote: list[str] = []

    def write(what: str) -> None:
        """The position is held by now, and nothing is read yet."""
        wrote.append(what)
        items.execute("UPDATE items SET price = price + 1, kind = 0 WHERE id < 5")
        items.execute("DELETE FROM items WHERE id = 10")
        items.execute("INSERT INTO items VALUES (100, 1, 5, 0.1)")

    store = Store.from_url(str(shop))
    done = list(backfill.run_backfill(spark, store, list(VIEWS), DEFINITIONS, progress=write))
    assert wrote
    assert [one.view for one in done] == list(VIEWS)
    assert all(one.snapshot < one.position for one in done), "they caught up with what came"
    require_right(items)
    items.execute("DELETE FROM items WHERE id = 20")
    require_right(items)
    assert list(backfill.run_backfill(spark, store, ["totals"], DEFINITIONS)) == []
    require_right(items)
    assert list((shop / "pipeline").iterdir()) == []


FLOATS = (
    "SELECT kind % 3 AS k, sum(weight) AS w, avg(d) AS d, sum(price) AS s, sum(big) AS b,"
    " count(*) FILTER (WHERE d > 0) AS n FROM items GROUP BY 1"
)
WALKED = {
    "floats": FLOATS,
    "whole": "SELECT count(*) AS n, sum(d) AS d, sum(big) AS b FROM items WHERE kind > 0",
    "rows": "SELECT kind, id FROM items UNION ALL SELECT id, 0 FROM kinds",
}
"""Added up where the tables are read."""

STATES = {
    "linear": "SELECT kind, count(*) AS n, count(price) AS p, sum(price) AS s, avg(id) AS a,"
    " variance(id) AS v, sum(big) AS b, sum(id) FILTER (WHERE price > 3) AS f"
    " FROM items GROUP BY kind",
    "floats_again": FLOATS,
    "rows_again": "SELECT kind, price FROM items",
    "digits": "SELECT price * 1.50 AS p, count(*) AS n FROM items GROUP BY 1",
    "joined": "SELECT k.name, count(*) AS n, sum(i.price) AS p FROM items i JOIN kinds k"
    " ON k.id = i.kind GROUP BY k.name",
}
FORMS = {
    "beside": ("placement = 'local'", "SELECT kind, count(*) AS n FROM items GROUP BY kind"),
    "side_by_side": (
        "join = 'colocated'",
        "SELECT i.id, k.name FROM items i JOIN kinds k ON k.id = i.kind",
    ),
}


def test_state_is_what_create_would_have_made(
    spark: SparkSession, shop: Path, connection: Connection
) -> None:
    """Added up by Spark, in columns and row by row: the very bytes of the local backfill."""
    connection.execute("CREATE TABLE kinds (id int PRIMARY KEY, name text)")
    connection.execute(
        "CREATE TABLE items (id int PRIMARY KEY, kind int, price numeric(8,2), weight real,"
        " d double precision, big bigint)"
    )
    for i in range(4):
        connection.execute("INSERT INTO kinds VALUES (?, ?)", (i, f"kind {i}"))
    floats = (0.1, -7.25, 1e300, 5e-324, float("nan"), float("-inf"), None)
    for i in range(80):
        row = (i, None if i % 9 == 8 else i % 5, None if i % 7 == 6 else i - 40, i / 3)
        big = (2**63 - 1) * (1 - i % 3)
        connection.execute(
            "INSERT INTO items VALUES (?, ?, ?, ?, ?, ?)", (*row, floats[i % 7], big)
        )
    wanted = {name: ("", query) for name, query in (WALKED | STATES).items()} | FORMS
    for name, (form, query) in wanted.items():
        options = ", ".join(filter(None, [form, "backfill = 'later'"]))
        connection.execute(f"CREATE MATERIALIZED VIEW {name} WITH ({options}) AS {query}")
        here = f" WITH ({form})" if form else ""
        connection.execute(f"CREATE MATERIALIZED VIEW {name}_here{here} AS {query}")
    store = Store.from_url(str(shop))
    known = get_compiled_views(
        fetch_encoded_catalog(store, store.take_position_lease()), DEFINITIONS
    )
    walked = [known.catalog.require_relation(View, name) for name in (*WALKED, "beside")]
    assert backfill.choose_views_summed_in_scan(known, walked) == [view.id for view in walked]
    for names in ([*WALKED, "beside"], [*STATES, "side_by_side"]):
        list(backfill.run_backfill(spark, store, names, DEFINITIONS))
    host = connection.session.host
    assert isinstance(host, Database)
    with host.begin() as reader:
        for name in wanted:
            states = [
                {key[PREFIX_BYTES:]: value for key, value in stored_state(reader, view).items()}
                for view in (
                    reader.catalog.require_relation(View, name + end) for end in ("", "_here")
                )
            ]
            assert states[0] == states[1], name
            assert states[0], name
    for found in verify.verify_views(spark, store, list(FORMS), DEFINITIONS):
        assert found.is_correct, found
        assert found.rows, found


def test_a_job_that_failed_is_begun_anew(
    spark: SparkSession, shop: Path, connection: Connection, items: Connection
) -> None:
    store = Store.from_url(str(shop))
    job = backfill.run_backfill(spark, store, ["totals", "joined"], DEFINITIONS)
    assert next(job).view == "totals"
    job.close()  # it ends between two views
    items.execute("UPDATE items SET price = 0 WHERE id = 1")
    (done,) = backfill.run_backfill(spark, store, ["joined"], DEFINITIONS)
    assert done.view == "joined"
    assert rows(items, "SELECT * FROM totals") == rows(items, VIEWS["totals"])
    assert rows(items, "SELECT * FROM joined") == rows(items, VIEWS["joined"])


def test_a_view_still_waits_after_a_restart(tmp_path: Path) -> None:
    place = str(tmp_path / "shop.db")
    with belvedere.connect(place, durability="off", autocommit=True) as connection:
        connection.execute("CREATE TABLE t (id int PRIMARY KEY)")
        connection.execute(
            "CREATE MATERIALIZED VIEW v WITH (backfill = 'later') AS SELECT id FROM t"
        )
    with belvedere.connect(place, durability="off", autocommit=True) as connection:
        with pytest.raises(OperationalError, match="cannot be read"):
            connection.execute("SELECT * FROM v")
        connection.execute("DROP MATERIALIZED VIEW v")


def test_only_files_of_a_job_are_taken_in(shop: Path, items: Connection, tmp_path: Path) -> None:
    store = Store.from_url(str(shop))
    lease = store.take_position_lease()
    foreign = tmp_path / "foreign.sst"
    foreign.write_bytes(b"x")
    catalog = backfill.decode_catalog(backfill.fetch_encoded_catalog(store, lease))
    view = backfill.find_view_by_name(catalog, "totals")
    begun = store.call_owner_verb("fill_begin", views=[view.id])
    (ensure_jobs_directory(store) / "backfill-1").mkdir()
    asked = {"view": view.id, "position": begun["position"], "files": [str(foreign)]}
    with pytest.raises(InvalidInput, match="not a file of a job"):
        store.call_owner_verb("fill_finish", job="backfill-1", **asked)
    for job in ("backfill-2", "..", "../..", "backfill-1/.."):
        with pytest.raises(InvalidInput, match="not a job of this store"):
            store.call_owner_verb("fill_finish", job=job, **asked)
