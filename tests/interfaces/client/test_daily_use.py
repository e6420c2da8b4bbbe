"""What a program uses every day: rows by name, JSON, named parameters, shared memory databases,
errors that say what happened where, and the log."""

from __future__ import annotations

import dataclasses
import logging
import traceback
from pathlib import Path
from typing import Any

import pytest

import belvedere
from belvedere.errors import Unsupported


@pytest.fixture
def users(con: belvedere.Connection) -> belvedere.Connection:
    con.execute("CREATE TABLE users (id int PRIMARY KEY, name text NOT NULL, data json)")
    con.execute(
        """INSERT INTO users VALUES (1, 'ann', '{"tags": ["a", null]}'), (2, 'bob', NULL)"""
    )
    return con


@dataclasses.dataclass
class User:
    id: int
    name: str


# -- rows by name ----------------------------------------------------------------------------------


def test_rows_come_as_dictionaries(users: belvedere.Connection) -> None:
    users.row_factory = belvedere.dict_row
    cursor = users.execute("SELECT id, name FROM users ORDER BY id")
    assert cursor.fetchone() == {"id": 1, "name": "ann"}
    assert cursor.fetchmany(5) == [{"id": 2, "name": "bob"}]
    assert cursor.fetchone() is None
    assert list(users.execute("SELECT count(*) AS n FROM users")) == [{"n": 2}]
    users.row_factory = None
    assert users.execute("SELECT id FROM users WHERE id = 1").fetchall() == [(1,)]


def test_rows_come_as_named_tuples(users: belvedere.Connection) -> None:
    users.row_factory = belvedere.namedtuple_row
    row = users.execute("SELECT id, name, 1 + 1, 5 AS id FROM users WHERE id = 1").fetchone()
    assert row == (1, "ann", 2, 5)
    assert (row.id, row.name, row._2, row._3) == (1, "ann", 2, 5)


def test_rows_come_as_dataclasses(users: belvedere.Connection) -> None:
    cursor = users.cursor(row_factory=belvedere.class_row(User))
    assert cursor.execute("SELECT id, name FROM users ORDER BY id").fetchall() == [
        User(1, "ann"),
        User(2, "bob"),
    ]
    assert users.execute("SELECT id FROM users WHERE id = 2").fetchone() == (2,)


def test_a_factory_is_called_once_a_statement_and_not_without_rows(
    users: belvedere.Connection,
) -> None:
    calls: list[list[str]] = []

    def count_calls(cursor: belvedere.Cursor) -> type:
        calls.append([column[0] for column in cursor.description or ()])
        return list

    users.row_factory = count_calls  # type: ignore[assignment]
    assert users.execute("SELECT id, name FROM users ORDER BY id").fetchall() == [
        [1, "ann"],
        [2, "bob"],
    ]
    users.execute("INSERT INTO users VALUES (3, 'eve')")
    assert calls == [["id", "name"]]
    with pytest.raises(belvedere.InterfaceError, match="row_factory"):
        users.row_factory = 3  # type: ignore[assignment]


def test_connections_without_a_factory_use_the_plain_cursor(users: belvedere.Connection) -> None:
    assert type(users.execute("SELECT 1")) is belvedere.Cursor
    users.row_factory = belvedere.dict_row
    assert type(users.execute("SELECT 1")) is not belvedere.Cursor


def test_connect_takes_a_row_factory() -> None:
    with belvedere.connect(":memory:", row_factory=belvedere.dict_row) as con:
        assert con.execute("SELECT 1 AS one").fetchall() == [{"one": 1}]
    with belvedere.connect(":memory:", row_factory=belvedere.tuple_row) as con:
        assert con.execute("SELECT 1 AS one").fetchall() == [(1,)]


# -- JSON ------------------------------------------------------------------------------------------


def test_json_is_text_unless_python_values_are_asked_for(users: belvedere.Connection) -> None:
    query = "SELECT data, name FROM users WHERE id = ?"
    assert users.execute(query, (1,)).fetchone() == ('{"tags": ["a", null]}', "ann")
    users.json_values = True
    assert users.execute(query, (1,)).fetchone() == ({"tags": ["a", None]}, "ann")
    assert users.execute(query, (2,)).fetchone() == (None, "bob")
    users.row_factory = belvedere.dict_row
    assert users.execute("SELECT data FROM users ORDER BY id").fetchall() == [
        {"data": {"tags": ["a", None]}},
        {"data": None},
    ]


# -- named parameters ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "values", "expected"),
    [
        ("SELECT name FROM users WHERE id = :id", {"id": 2, "other": 9}, "bob"),
        ("SELECT :a || :b || :a", {"a": "x", "b": "y"}, "xyx"),
        ("SELECT ':a' || :a /* :b */ -- :c\n", {"a": "x"}, ":ax"),
        ("SELECT :a::text", {"a": 1}, "1"),
        ("SELECT (ARRAY[4, 5, 6])[1 : n] FROM (SELECT 2 AS n) AS t", {}, [4, 5]),
    ],
)
def test_named_parameters_take_values_from_a_mapping(
    users: belvedere.Connection, sql: str, values: dict[str, object], expected: object
) -> None:
    row = users.execute(sql, values).fetchone()
    assert row is not None
    assert row[0] == expected


def test_executemany_takes_mappings(users: belvedere.Connection) -> None:
    users.executemany(
        "INSERT INTO users (id, name) VALUES (:id, :name)",
        [{"id": 7, "name": "x"}, {"id": 8, "name": "y"}],
    )
    assert users.execute("SELECT count(*) FROM users").fetchone() == (4,)


def test_a_missing_name_is_named(users: belvedere.Connection) -> None:
    with pytest.raises(belvedere.ProgrammingError, match="name=nobody") as caught:
        users.execute("SELECT :nobody", {"id": 1})
    assert caught.value.sqlstate == "42P02"


def test_named_and_numbered_parameters_do_not_mix(users: belvedere.Connection) -> None:
    with pytest.raises(belvedere.ProgrammingError, match="mixes"):
        users.execute("SELECT :a, ?", {"a": 1})


def test_the_position_of_an_error_is_that_of_the_written_statement(
    users: belvedere.Connection,
) -> None:
    sql = "SELECT :a, :long_name, nosuch, :a FROM users"
    with pytest.raises(belvedere.ProgrammingError) as caught:
        users.execute(sql, {"a": 1, "long_name": 2})
    assert caught.value.position == sql.index("nosuch") + 1


# -- databases in memory ---------------------------------------------------------------------------


def test_a_memory_database_with_a_name_is_shared_until_its_last_connection_closes() -> None:
    with belvedere.connect(":memory:shop", autocommit=True) as first:
        first.execute("CREATE TABLE t (a int)")
        with belvedere.connect(":memory:shop") as second:
            assert second.execute("SELECT count(*) FROM t").fetchone() == (0,)
        for other in (":memory:", ":memory:shed"):
            with belvedere.connect(other) as third, pytest.raises(belvedere.ProgrammingError):
                third.execute("SELECT count(*) FROM t")
    with belvedere.connect(":memory:shop") as again, pytest.raises(belvedere.ProgrammingError):
        again.execute("SELECT count(*) FROM t")


# -- settings --------------------------------------------------------------------------------------


def test_the_rarer_settings_are_given_as_a_config(tmp_path: Path) -> None:
    config = belvedere.Config(statement_retries_max=3)
    with belvedere.connect(str(tmp_path / "a"), config=config, durability="off") as con:
        assert con.session.host.config.statement_retries_max == 3  # type: ignore[union-attr]
        assert con.session.host.config.durability == "off"  # type: ignore[union-attr]


# -- errors ----------------------------------------------------------------------------------------


def test_a_traceback_has_the_callers_lines_and_no_inside(users: belvedere.Connection) -> None:
    try:
        users.execute("SELECT id / 0 FROM users")
    except belvedere.DataError as error:
        shown = "".join(traceback.format_exception(error))
        frames = traceback.extract_tb(error.__traceback__)
    assert "users.execute(" in shown
    assert "The above exception" not in shown
    assert "During handling" not in shown
    assert shown.count("Traceback") == 1
    inside = [frame for frame in frames if "belvedere/interfaces/client" in frame.filename]
    assert len(frames) == 1 + len(inside) <= 3


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        ("COMMENT ON ROLE users IS 'x'", "COMMENT ON ROLE is not supported"),
        ("LISTEN orders", "LISTEN here is not supported"),
        ("CREATE FUNCTION f() RETURNS int AS 'x'", "CREATE FUNCTION is not supported"),
        ("DROP TRIGGER x ON users", "DROP TRIGGER is not supported"),
        ("ALTER TABLE users SET LOGGED", "ALTER TABLE SET LOGGED is not supported"),
        ("CREATE TABLE a (b inet)", "type is not supported (type=inet)"),
        ("CREATE TEMP TABLE a (b int)", "temporary table is not supported"),
        ("CREATE TEMPORARY VIEW a AS SELECT 1", "temporary view is not supported"),
        ("ALTER SYSTEM SET work_mem = 1", "ALTER SYSTEM is not supported"),
        ("MERGE INTO users USING users u ON true", "MERGE is not supported\nhint: use insert"),
        ("SELECT * FROM users TABLESAMPLE system (1)", "TABLESAMPLE is not supported"),
    ],
)
def test_a_refusal_says_what_is_refused(
    users: belvedere.Connection, sql: str, message: str
) -> None:
    with pytest.raises(belvedere.NotSupportedError) as caught:
        users.execute(sql)
    assert str(caught.value).startswith(message)
    assert caught.value.sqlstate == "0A000"


@pytest.mark.parametrize(
    ("sql", "values", "hint"),
    [
        ("SELECT name FROM users WHERE id = %s", (1,), "parameters are ? or $1"),
        ("INSERT INTO users (id) VALUES (%(id)s)", {"id": 9}, "parameters are ? or $1"),
        ("SELECT ?", ({"a": 1},), "json.dumps"),
    ],
)
def test_habits_of_other_drivers_are_told_what_to_write(
    users: belvedere.Connection, sql: str, values: Any, hint: str
) -> None:
    with pytest.raises(belvedere.ProgrammingError) as caught:
        users.execute(sql, values)
    assert hint in (caught.value.hint or "")


def test_a_refusal_that_is_a_sentence_stays_as_it_is() -> None:
    assert str(Unsupported("infinite dates are not supported", x=1)) == (
        "infinite dates are not supported (x=1)"
    )
    assert str(Unsupported("an index that is not unique")).endswith("unique is not supported")


@pytest.mark.parametrize("url", ["postgresql://localhost/shop", "sqlite:///shop.db", "file://x"])
def test_addresses_of_other_databases_are_refused_by_name(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scheme = url.split(":")[0]
    with pytest.raises(belvedere.NotSupportedError, match=f"{scheme}:// is not supported"):
        belvedere.connect(url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", [None, "", 5, b"shop.db", "shop\0.db", ["shop.db"]])
def test_what_is_no_address_of_a_store_makes_no_directory(
    url: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(belvedere.DatabaseError, match="address of a store"):
        belvedere.connect(url)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "options",
    [{"memory_limit_mb": 0}, {"memory_limit_mb": "1"}, {"memory_limit_mb": True}, {"config": 5}],
)
def test_options_of_connect_that_cannot_be_are_named(options: dict[str, Any]) -> None:
    with pytest.raises(belvedere.DatabaseError, match=f"^{next(iter(options))} must be"):
        belvedere.connect(":memory:", **options)


# -- the log ---------------------------------------------------------------------------------------


def test_statements_are_logged_when_their_logger_is_enabled(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, "belvedere"):
        with belvedere.connect(":memory:", autocommit=True) as con:
            con.execute("SELECT 1")
            with pytest.raises(belvedere.ProgrammingError):
                con.execute("SELECT nosuch")
    found = [(r.name, r.levelname, r.getMessage()) for r in caplog.records]
    assert ("belvedere.store", "INFO", "opened :memory: at position 0") in found
    assert ("belvedere.store", "INFO", "closed :memory:") in found
    names = [name for name, _, text in found if "SELECT" in text]
    assert names == ["belvedere.statements"] * 2
    assert any(level == "DEBUG" and "SELECT 1 took" in text for _, level, text in found)
    assert any(level == "INFO" and "failed with 42703" in text for _, level, text in found)


def test_the_package_logs_nothing_by_itself(capfd: pytest.CaptureFixture[str]) -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        with pytest.raises(belvedere.ProgrammingError):
            con.execute("SELECT nosuch")
    assert capfd.readouterr() == ("", "")
