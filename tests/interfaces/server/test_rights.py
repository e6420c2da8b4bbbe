"""Roles that are not superusers, over the wire: logins, plans of one's own, SET ROLE, limits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import errors

from belvedere.config import Durability
from belvedere.interfaces.server.listener import Endpoints, Listener
from belvedere.interfaces.server.login import LoginPolicy
from belvedere.interfaces.stores import OpenOptions, acquire_store, release_store
from belvedere.session.session import Session

SETUP = (
    "create role ann login password 'a'",
    "create role bob login password 'b' connection limit 1",
    "create role group_of_readers",
    "create role boss login superuser password 'c'",
    "create table t (id integer primary key, a integer)",
    "insert into t values (1, 10)",
    "create materialized view m as select a, count(*) as n from t group by a",
    "create view v as select id from t",
    "grant select on m, v to ann",
    "grant group_of_readers to bob",
    "grant select on t to group_of_readers",
)
Login = Callable[[str, str], "psycopg.Connection[Any]"]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    options = OpenOptions(durability=Durability.OFF, allow_remote=False)
    opened = acquire_store(str(tmp_path / "shop.db"), options)
    owner = Session(opened.shared)
    for statement in SETUP:
        owner.execute(statement)
    yield opened
    owner.close()
    release_store(opened)


@pytest.fixture
def login(store: Any) -> Iterator[Login]:
    listener = Listener(
        store.shared, "shop", Endpoints(address=("127.0.0.1", 0)), LoginPolicy(failure_pause_s=0)
    )
    opened: list[psycopg.Connection[Any]] = []

    def log_in(user: str, password: str) -> psycopg.Connection[Any]:
        opened.append(
            psycopg.connect(
                host="127.0.0.1",
                port=listener.port,
                user=user,
                password=password,
                dbname="shop",
                autocommit=True,
            )
        )
        return opened[-1]

    try:
        yield log_in
    finally:
        for one in opened:
            one.close()
        listener.close()


def test_a_role_reads_views_without_rights_on_their_tables(login: Login) -> None:
    con = login("ann", "a")
    assert con.execute("select a, n from m").fetchall() == [(10, 1)]
    assert con.execute("select id from v").fetchall() == [(1,)]
    with pytest.raises(errors.InsufficientPrivilege):
        con.execute("select a from t")


def test_the_session_is_the_role_that_logged_in(login: Login) -> None:
    question = "select current_user, session_user, current_database(), current_role"
    for user, password, superuser in (("ann", "a", "off"), ("boss", "c", "on")):
        con = login(user, password)
        assert con.execute(question).fetchone() == (user, user, "shop", user)
        assert con.info.parameter_status("is_superuser") == superuser
        assert con.info.parameter_status("session_authorization") == user
    assert login("bob", "b").execute("select datname from pg_database").fetchall() == [("shop",)]


def test_plans_are_not_shared_with_those_who_may_not(login: Login) -> None:
    """The same text, cached for one who may, is checked for one who may not; both prepared."""
    may, may_not = login("bob", "b"), login("ann", "a")
    for _ in range(3):
        assert may.execute("select a from t where id = %s", (1,), prepare=True).fetchone() == (10,)
        with pytest.raises(errors.InsufficientPrivilege):
            may_not.execute("select a from t where id = %s", (1,), prepare=True)
        with pytest.raises(errors.InsufficientPrivilege):
            may_not.execute("update t set a = 1 where id = 1")


def test_a_prepared_statement_ends_with_its_right(login: Login) -> None:
    con, boss = login("bob", "b"), login("boss", "c")
    for _ in range(3):
        assert con.execute("select a from t where id = 1", prepare=True).fetchone() == (10,)
    boss.execute("revoke select on t from group_of_readers")
    with pytest.raises(errors.InsufficientPrivilege):
        con.execute("select a from t where id = 1", prepare=True)
    boss.execute("grant select on t to bob")
    assert con.execute("select a from t where id = 1", prepare=True).fetchone() == (10,)


def test_a_superuser_who_is_none_any_more_loses_his_rights(login: Login) -> None:
    con, boss = login("boss", "c"), login("boss", "c")
    assert con.execute("select a from t where id = 1").fetchone() == (10,)
    boss.execute("alter role boss nosuperuser")
    with pytest.raises(errors.InsufficientPrivilege):
        con.execute("select a from t where id = 1")


def test_set_role_drops_rights_until_it_is_reset(login: Login) -> None:
    con = login("boss", "c")
    text = "select a from t where id = 1"
    for _ in range(2):
        assert con.execute(text, prepare=True).fetchone() == (10,)
        con.execute("set role ann")
        assert con.info.parameter_status("is_superuser") == "off"
        with pytest.raises(errors.InsufficientPrivilege):
            con.execute(text, prepare=True)
        con.execute("reset role")
    with pytest.raises(errors.InsufficientPrivilege):
        login("ann", "a").execute("set role boss")


def test_a_role_cannot_become_another_by_connection_options(login: Login, store: Any) -> None:
    con = login("ann", "a")
    parameters = con.info.get_parameters()
    for option in ("-c role=boss", "-c session_authorization=boss", "-c is_superuser=on"):
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(**{**parameters, "options": option}, password="a")


def test_a_role_needs_connect_and_room(login: Login) -> None:
    boss, _ = login("boss", "c"), login("bob", "b")
    with pytest.raises(psycopg.OperationalError, match="too many connections"):
        login("bob", "b")
    boss.execute("revoke connect on database shop from public")
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        login("ann", "a")
    boss.execute("grant connect on database shop to ann")
    login("ann", "a")


def test_files_of_the_server_need_a_right(login: Login, tmp_path: Path) -> None:
    con, boss = login("ann", "a"), login("boss", "c")
    file = tmp_path / "rows.csv"
    for verb in ("to", "from"):
        with pytest.raises(errors.InsufficientPrivilege):
            con.execute(f"copy m {verb} '{file}'" if verb == "to" else f"copy t from '{file}'")
    boss.execute("grant pg_write_server_files to ann")
    con.execute(f"copy m to '{file}'")
    assert file.read_text() == "10\t1\n"


def test_information_schema_shows_what_one_may_use(login: Login) -> None:
    question = "select table_name from information_schema.tables where table_schema = 'public'"
    assert login("ann", "a").execute(question).fetchall() == [("m",), ("v",)]
    assert len(login("boss", "c").execute(question).fetchall()) == 3
