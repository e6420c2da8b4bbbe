"""Statements about views: what they do to views, and what they refuse."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.catalog.model import Index, Maintenance
from belvedere.codec import accumulator, keyspace
from belvedere.errors import Error, InvalidInput, Unsupported
from belvedere.txn.contracts import Reader
from belvedere.views.registry.transitions import edit_view_maintenance
from tests.views.sql import Store, opened, rows_of

TOTALS = "SELECT g, count(*) AS c, sum(v) AS s FROM t GROUP BY g"


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run(
            "CREATE TABLE t (id int PRIMARY KEY, g text, v int)",
            "INSERT INTO t VALUES (1, 'a', 1), (2, 'a', 2), (3, NULL, 3)",
        )
        yield made


def refused(store: Store, statement: str, sqlstate: str) -> Error:
    with pytest.raises(Error) as found:
        store.run(statement)
    assert found.value.sqlstate == sqlstate, found.value
    return found.value


# -- live switch -----------------------------------------------------------------------------------


def test_a_view_switches_between_immediate_and_deferred(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v AS {TOTALS}")
    store.run("ALTER MATERIALIZED VIEW v SET (maintenance = 'deferred')")
    assert store.view("v").maintenance is Maintenance.DEFERRED
    store.run("INSERT INTO t VALUES (4, 'b', 4)")
    assert ("b", 1, 4) in store.run("SELECT * FROM v")
    store.run("ALTER MATERIALIZED VIEW v SET (maintenance = 'immediate')")
    store.run("DELETE FROM t WHERE id = 4")
    assert ("b", 1, 4) not in store.run("SELECT * FROM v")
    assert store.verified() == {"v": True}
    assert [view.name for view in store.db.catalog.views] == ["v"]
    with store.db.begin() as reader:
        assert not list(reader.scan(*keyspace.watermark_range()))


def test_a_switch_beside_pending_changes_loses_none(store: Store) -> None:
    """The log holds changes that nobody has applied when the view becomes immediate."""
    store.run(f"CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred') AS {TOTALS}")
    view = store.view("v")
    for number in range(10, 30):
        store.run(f"INSERT INTO t VALUES ({number}, 'n', 1)")
    store.db.change_schema(
        lambda edit: edit_view_maintenance(edit, view, Maintenance.IMMEDIATE, view.options)
    )
    assert ("n", 20, 20) in store.run("SELECT * FROM v")
    assert store.verified() == {"v": True}


def test_an_unknown_option_is_refused(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v AS {TOTALS}")
    refused(store, "ALTER MATERIALIZED VIEW v SET (speed = 'high')", "22023")
    refused(store, "ALTER MATERIALIZED VIEW v SET (maintenance = 'never')", "22023")


# -- replace, repair, drop -------------------------------------------------------------------------


def test_replacing_a_view_changes_what_it_shows(store: Store) -> None:
    store.run("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT id FROM t WHERE v > 1")
    assert store.run("SELECT * FROM v ORDER BY 1") == [(2,), (3,)]
    store.run("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT g, id FROM t WHERE v < 2")
    assert store.run("SELECT * FROM v") == [("a", 1)]
    assert [view.name for view in store.db.catalog.views] == ["v"]


def test_a_view_that_others_read_is_not_replaced(store: Store) -> None:
    store.run("CREATE MATERIALIZED VIEW v AS SELECT id FROM t")
    store.run("CREATE MATERIALIZED VIEW w AS SELECT count(*) AS c FROM v")
    refused(store, "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT g FROM t", "2BP01")
    assert [view.name for view in store.db.catalog.views] == ["v", "w"]
    assert store.run("SELECT * FROM w") == [(3,)]


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_verify_finds_damage_and_repair_mends_it(store: Store, maintenance: str) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v WITH (maintenance = '{maintenance}') AS {TOTALS}")
    damage(store, "v")
    (found,) = store.run("VERIFY MATERIALIZED VIEW v")
    assert found[3:] == (2, 1, False)
    (mended,) = store.run("REPAIR MATERIALIZED VIEW v")
    assert mended[-1] is True
    store.run("INSERT INTO t VALUES (9, 'a', 9)", "DELETE FROM t WHERE id = 3")
    assert store.run("SELECT * FROM v") == [("a", 3, 12)]


def damage(store: Store, name: str) -> None:
    """One stored group is lost, another gets a wrong sum."""
    start, end = keyspace.relation_range(store.view(name).id)

    def make(reader: Reader) -> list[tuple[bytes, bytes | None]]:
        (first, _), (second, wrong) = [p for batch in reader.scan(start, end) for p in batch]
        payload, amounts = accumulator.decode(wrong)
        return [(first, None), (second, accumulator.encode(payload, (*amounts[:-1], 99)))]

    store.db.commits.derive(make)


def test_a_dropped_deferred_view_no_longer_holds_the_log(store: Store) -> None:
    store.run(f"CREATE MATERIALIZED VIEW v WITH (maintenance = 'deferred') AS {TOTALS}")
    store.run("DROP MATERIALIZED VIEW v")
    for number in range(10, 15):
        store.run(f"INSERT INTO t VALUES ({number}, 'n', 1)")
    wanted = store.db.position - 1
    assert store.db.trim(wanted) == wanted


def test_an_index_made_for_two_views_stays_until_both_are_gone(store: Store) -> None:
    pairs = "SELECT a.id AS x, b.id AS y FROM t a JOIN t b ON a.g = b.g"
    store.run(f"CREATE MATERIALIZED VIEW v AS {pairs}", f"CREATE MATERIALIZED VIEW w AS {pairs}")
    assert helping_indexes(store) == 1
    store.run("DROP MATERIALIZED VIEW v")
    assert helping_indexes(store) == 1
    store.run("INSERT INTO t VALUES (4, 'a', 4)", "DROP MATERIALIZED VIEW w")
    assert helping_indexes(store) == 0


def helping_indexes(store: Store) -> int:
    items = store.db.catalog.table_indexes(store.db.get_compiled_table("t").table.id)
    return sum(isinstance(item, Index) and item.hidden for item in items)


# -- the catalog moves under a view ----------------------------------------------------------------


def test_a_later_column_is_not_in_a_view(store: Store) -> None:
    store.run("CREATE MATERIALIZED VIEW v AS SELECT * FROM t")
    store.run("ALTER TABLE t ADD COLUMN extra int DEFAULT 7", "UPDATE t SET extra = 1")
    store.run("INSERT INTO t VALUES (4, 'b', 4, 4)")
    assert store.run("SELECT * FROM v ORDER BY id")[-1] == (4, "b", 4)
    store.run("ALTER TABLE t DROP COLUMN extra")
    assert store.verified() == {"v": True}


@pytest.mark.parametrize(
    "statement",
    [
        "ALTER TABLE t DROP COLUMN v",
        "DROP TABLE t",
        "DROP MATERIALIZED VIEW first",
        "DROP VIEW plain",
        "CREATE OR REPLACE VIEW plain AS SELECT id, v FROM t WHERE v > 2",
    ],
)
def test_what_a_view_stands_on_is_not_taken_away(store: Store, statement: str) -> None:
    store.run("CREATE VIEW plain AS SELECT id, v FROM t WHERE v > 1")
    store.run("CREATE MATERIALIZED VIEW first AS SELECT id, v FROM plain")
    store.run("CREATE MATERIALIZED VIEW second AS SELECT max(v) AS m FROM first")
    refused(store, statement, "2BP01")
    store.run("INSERT INTO t VALUES (4, 'b', 40)")
    assert store.run("SELECT * FROM second") == [(40,)]


def test_the_same_inside_a_transaction_is_refused_at_its_commit(store: Store) -> None:
    store.run("CREATE MATERIALIZED VIEW v AS SELECT v FROM t")
    store.run("BEGIN", "ALTER TABLE t DROP COLUMN v")
    refused(store, "COMMIT", "2BP01")
    assert len(store.run("SELECT v FROM t")) == 3


def test_cascade_takes_views_on_views_along(store: Store) -> None:
    store.run("CREATE MATERIALIZED VIEW a AS SELECT id, v FROM t")
    store.run("CREATE MATERIALIZED VIEW b AS SELECT id FROM a")
    store.run("CREATE MATERIALIZED VIEW c AS SELECT a.id FROM a JOIN b ON a.id = b.id")
    store.run("DROP MATERIALIZED VIEW a CASCADE")
    assert store.db.catalog.views == ()


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "construct"),
    [
        ("SELECT now() AS x FROM t", "function now"),
        ("SELECT random() AS x FROM t", "function random"),
        (
            "WITH RECURSIVE r AS (SELECT 1 AS i UNION ALL SELECT i + 1 FROM r WHERE i < 3)"
            " SELECT * FROM r",
            "recursive query",
        ),
        ("SELECT id FROM t LIMIT 1", "limit without order by"),
    ],
)
def test_what_has_no_delta_is_refused_by_name(store: Store, query: str, construct: str) -> None:
    with pytest.raises(Unsupported) as found:
        store.run(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert found.value.facts["construct"] == construct
    assert store.db.catalog.views == ()


@pytest.mark.parametrize("strict", ["", "WITH (strict = false)"])
@pytest.mark.parametrize(
    ("query", "construct"),
    [
        ("SELECT name FROM belvedere.settings", "system table"),
        ("SELECT g FROM t FOR UPDATE", "row locks"),
        ("SELECT g FROM t WITH NO DATA", "no data"),
        ("SELECT ARRAY[g] AS a FROM t", "array column"),
    ],
)
def test_what_no_form_of_a_view_can_have_is_refused_by_name(
    store: Store, query: str, construct: str, strict: str
) -> None:
    error = refused(store, f"CREATE MATERIALIZED VIEW none {strict} AS {query}", "0A000")
    assert isinstance(error, Unsupported)
    assert construct in error.message
    assert "strict" not in (error.hint or "")
    assert store.db.catalog.find_relation("none") is None


def test_an_error_in_an_immediate_view_fails_the_write(store: Store) -> None:
    store.run("CREATE MATERIALIZED VIEW v AS SELECT id, 10 / v AS x FROM t")
    refused(store, "INSERT INTO t VALUES (4, 'b', 0)", "22012")
    assert len(store.run("SELECT * FROM v")) == 3


def test_an_error_in_a_deferred_view_is_its_readers_until_the_row_is_gone(store: Store) -> None:
    for name, query in (("bad", "SELECT id, 10 / v AS x FROM t"), ("good", TOTALS)):
        store.run(f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = 'deferred') AS {query}")
    store.run("INSERT INTO t VALUES (4, 'b', 0)")
    refused(store, "SELECT * FROM bad", "22012")
    refused(store, "REFRESH MATERIALIZED VIEW bad", "22012")
    assert ("b", 1, 0) in store.run("SELECT * FROM good")
    store.run("DELETE FROM t WHERE id = 4")
    store.run("REFRESH MATERIALIZED VIEW bad")
    assert len(store.run("SELECT * FROM bad")) == 3
    assert not store.db.views.errors


def test_an_error_above_the_groups_is_the_readers(store: Store) -> None:
    store.run("CREATE MATERIALIZED VIEW v AS SELECT g, 10 / (count(*) - 1) AS x FROM t GROUP BY g")
    refused(store, "SELECT * FROM v", "22012")
    store.run("DELETE FROM t WHERE g IS NULL")
    assert store.run("SELECT * FROM v") == [("a", 10)]


def test_hostile_names_come_back_as_they_went_in(store: Store) -> None:
    name, column = 'x"; DROP TABLE t; --', "it's \\ 'quoted'"
    quoted = name.replace('"', '""')
    store.run(f'CREATE MATERIALIZED VIEW "{quoted}" AS SELECT g AS "{column}" FROM t')
    session = store.session()
    assert len(rows_of(session, f'SELECT "{column}" FROM "{quoted}"')) == 3
    assert store.verified_names() == [name]


def test_a_view_is_not_written(store: Store) -> None:
    store.run("CREATE MATERIALIZED VIEW v AS SELECT id FROM t")
    with pytest.raises(InvalidInput):
        store.run("INSERT INTO v VALUES (1)")


def test_a_view_has_json_columns_by_their_text() -> None:
    with opened() as store:
        store.run(
            "CREATE TABLE docs (id int PRIMARY KEY, kind text, body json)",
            "CREATE MATERIALIZED VIEW v AS SELECT kind, body FROM docs WHERE id < 9",
            """INSERT INTO docs VALUES (1, 'a', '{"x": 1}'), (2, 'a', '{"x": 1}'),"""
            """ (3, 'a', '{"x":1}'), (4, NULL, NULL)""",
            "UPDATE docs SET body = '[2]' WHERE id = 1",
            "DELETE FROM docs WHERE id = 4",
        )
        found = sorted(map(str, store.run("SELECT kind, body::text FROM v")))
        assert found == ["('a', '[2]')", """('a', '{"x": 1}')""", """('a', '{"x":1}')"""]
        assert store.run("""SELECT body ->> 'x' FROM v WHERE body::text = '{"x":1}'""") == [("1",)]
        assert set(store.verified().values()) == {True}


# -- functions that PostgreSQL calls stable -------------------------------------------------------

STABLE = {
    "joined": "'n' || v",
    "concatenated": "concat_ws('-', g, v)",
    "formatted": "format('%s: %s', g, v)",
    "as_text": "(date '2024-01-30' + v)::text",
    "month": "to_char(date '2024-01-30' + v, 'YYYY-MM')",
    "truncated": "date_trunc('month', timestamptz '2024-01-30 12:00+00' + v * interval '1 day')",
    "day": "(timestamptz '2024-01-30 23:30+00' + v * interval '1 day')::date",
    "year": "extract(year FROM timestamptz '2024-12-31 23:30+00' + v * interval '1 day')",
}


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
def test_what_depends_on_fixed_settings_alone_is_maintained(store: Store, maintenance: str) -> None:
    queries = {
        name: f"SELECT {text} AS x, count(*) AS c FROM t GROUP BY 1"
        for name, text in STABLE.items()
    }
    for name, query in queries.items():
        store.run(
            f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = '{maintenance}') AS {query}"
        )
    store.run(
        "INSERT INTO t VALUES (4, 'b', 2), (5, 'b', NULL)", "UPDATE t SET v = v + 1 WHERE id < 3"
    )
    for name, query in queries.items():
        assert sorted(store.run(f"SELECT * FROM {name}"), key=repr) == sorted(
            store.run(query), key=repr
        )
    assert set(store.verified().values()) == {True}


@pytest.mark.parametrize(
    "text", ["now()", "current_date", "current_user", "random()", "age(now())"]
)
def test_what_depends_on_when_or_by_whom_it_is_asked_is_refused(store: Store, text: str) -> None:
    error = refused(store, f"CREATE MATERIALIZED VIEW w AS SELECT {text} AS x FROM t", "0A000")
    assert error.detail is not None
    assert error.detail.endswith("its result depends on more than the rows")


def test_functions_of_the_time_zone_are_those_of_utc_and_made_under_utc(store: Store) -> None:
    store.run("SET timezone = 'Europe/Vienna'")
    error = refused(store, f"CREATE MATERIALIZED VIEW z AS SELECT {STABLE['day']} FROM t", "0A000")
    assert (error.detail, error.facts["function"]) == ("a view is kept in UTC", "cast")
    store.run(f"CREATE MATERIALIZED VIEW z AS SELECT {STABLE['joined']} AS x FROM t")
    store.run("CREATE MATERIALIZED VIEW s WITH (strict = false) AS SELECT now() AS x FROM t")


def test_a_view_of_a_whole_table_may_be_written_short(store: Store) -> None:
    store.run(
        "CREATE MATERIALIZED VIEW short AS TABLE t",
        "CREATE VIEW plain AS TABLE public.t",
        "CREATE MATERIALIZED VIEW doubled AS TABLE t UNION ALL TABLE plain",
        "ALTER TABLE t ADD COLUMN later int",
        "INSERT INTO t VALUES (4, 'b', 4, 4)",
    )
    rows = store.run("SELECT id, g, v FROM t ORDER BY id")
    assert store.run("SELECT * FROM short ORDER BY id") == rows
    assert store.run("SELECT DISTINCT * FROM doubled ORDER BY id") == rows
    store.run("DROP MATERIALIZED VIEW doubled", "DROP VIEW plain", "ALTER TABLE t RENAME TO u")
    assert store.run("SELECT * FROM short ORDER BY id") == rows
    assert set(store.verified().values()) == {True}


# -- what is NULL whatever a row has ---------------------------------------------------------------


@pytest.mark.parametrize("maintenance", ["immediate", "deferred"])
@pytest.mark.parametrize(
    "query",
    [
        "SELECT id FROM t WHERE v / 0 = NULL",
        "SELECT id FROM t WHERE NOT v / - + 0 BETWEEN NULL AND NULL",
        "SELECT id, v / 0 + NULL AS n FROM t",
        "SELECT count(*) AS n FROM t WHERE v / 0 < NULL AND v > 1",
    ],
)
def test_a_view_does_not_compute_what_is_null_anyway(
    store: Store, query: str, maintenance: str
) -> None:
    """As its query does: PostgreSQL, too, says NULL there and divides nothing."""
    store.run(f"CREATE MATERIALIZED VIEW v WITH (maintenance = '{maintenance}') AS {query}")
    store.run("INSERT INTO t VALUES (4, 'b', 4)")
    found = rows_of(store.session(), "SELECT * FROM v", "latest")
    assert sorted(found) == sorted(rows_of(store.session(), query))
    assert refused(store, "DROP TABLE t", "2BP01")


def test_a_table_of_which_no_column_is_used_may_be_joined() -> None:
    with opened() as store:
        store.run("CREATE TABLE single (id int PRIMARY KEY)")
        store.run("CREATE TABLE t (id int PRIMARY KEY, g int, h int, v interval)")
        store.run("INSERT INTO single VALUES (1), (2)")
        query = "SELECT t.h, t.g, count(DISTINCT t.v) AS n FROM single CROSS JOIN t GROUP BY 1, 2"
        store.run(f"CREATE MATERIALIZED VIEW pairs AS {query}")
        for change in (
            "INSERT INTO t VALUES (1, 1, 1, '1 day'), (2, 1, 1, '24 hours'), (3, 2, NULL, NULL)",
            "INSERT INTO single VALUES (3)",
            "UPDATE t SET g = 3, v = '1 hour' WHERE id = 2",
            "DELETE FROM t WHERE id = 1",
            "DELETE FROM single",
        ):
            store.run(change)
            found = sorted(map(str, store.run("SELECT * FROM pairs")))
            assert found == sorted(map(str, store.run(query))), change
