"""CREATE, ALTER and DROP ROLE."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.session.session import Session
from belvedere.values.scram import make_verifier, parse_verifier


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        yield opened


def find_role(con: belvedere.Connection, name: str) -> object:
    session = con.session
    assert isinstance(session, Session)
    return session.catalog.roles.get(name)


def test_a_password_is_stored_as_a_verifier_only(tmp_path: Path) -> None:
    with belvedere.connect(str(tmp_path / "s"), autocommit=True) as con:
        con.execute("CREATE USER ann WITH SUPERUSER ENCRYPTED PASSWORD 'hush-hush'")
        role = find_role(con, "ann")
        assert getattr(role, "login") is True  # noqa: B009 (a role is an object here)
        assert parse_verifier(getattr(role, "verifier")) is not None  # noqa: B009
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or b"hush-hush" not in file.read_bytes()


def test_a_verifier_is_taken_as_it_is(con: belvedere.Connection) -> None:
    verifier = make_verifier("x", b"0123456789abcdef")
    con.execute(f"CREATE ROLE ann PASSWORD '{verifier}'")
    assert getattr(find_role(con, "ann"), "verifier") == verifier  # noqa: B009


def test_roles_change_and_go(con: belvedere.Connection) -> None:
    con.execute("CREATE ROLE ann LOGIN PASSWORD 'x'")
    con.execute("ALTER ROLE ann SET statement_timeout = '5s'")
    con.execute("ALTER ROLE ann RENAME TO eve")
    assert find_role(con, "ann") is None
    role = find_role(con, "eve")
    assert getattr(role, "settings") == {"statement_timeout": "5s"}  # noqa: B009
    con.execute("ALTER ROLE eve RESET all")
    con.execute("ALTER USER eve NOLOGIN PASSWORD NULL")
    role = find_role(con, "eve")
    assert getattr(role, "settings") == {}  # noqa: B009
    assert getattr(role, "verifier") is None  # noqa: B009
    con.execute("DROP ROLE eve")
    con.execute("DROP ROLE IF EXISTS eve")
    assert find_role(con, "eve") is None


def test_a_role_is_rolled_back_with_its_transaction(con: belvedere.Connection) -> None:
    con.execute("BEGIN")
    con.execute("CREATE ROLE ann")
    con.execute("ROLLBACK")
    assert find_role(con, "ann") is None


@pytest.mark.parametrize(
    ("text", "sqlstate"),
    [
        ("CREATE ROLE bob", "42710"),
        ("CREATE ROLE public", "42939"),
        ("CREATE ROLE pg_reader", "42939"),
        ("ALTER ROLE missing LOGIN", "42704"),
        ("DROP ROLE missing", "42704"),
        ("ALTER ROLE bob SET missing = 1", "42704"),
        ("ALTER ROLE bob SET server_version = 1", "55P02"),
        ("ALTER ROLE bob SET freshness = 'soon'", "22023"),
        ("CREATE ROLE ann VALID UNTIL 'never'", "22007"),
        ("CREATE ROLE ann CREATEDB", "0A000"),
        ("CREATE ROLE ann SOMETHING", "42601"),
        ("CREATE ROLE ann PASSWORD secret", "42601"),
    ],
)
def test_wrong_statements_are_refused(con: belvedere.Connection, text: str, sqlstate: str) -> None:
    con.execute("CREATE ROLE bob")
    with pytest.raises(belvedere.Error) as caught:
        con.execute(text)
    assert caught.value.sqlstate == sqlstate
