"""The rights matrix: role x object x statement, allowed or 42501, as one golden table.

Every cell of a statement that PostgreSQL has is compared with PostgreSQL. `--update` writes the
table anew.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import belvedere
from belvedere.errors import Error
from belvedere.session.materialized.table_subscription import open_subscription
from belvedere.session.rights.statement_rules import RULES
from belvedere.session.session import Session
from belvedere.session.statement import bind
from belvedere.sql import statements as s
from tests.oracle.postgres import Postgres
from tests.session.rights.statements import (
    EXPLAINED,
    ONLY_HERE,
    OTHERS,
    ROLES,
    SETUP,
    TEARDOWN,
)

GOLDEN = Path(__file__).parent / "matrix.txt"
DENIED, ALLOWED = "42501", "yes"
SHARED = [*EXPLAINED, *(f"explain {one}" for one in EXPLAINED), *OTHERS]
SUBSCRIPTIONS = ("s.t", "s.m", "s.secret")
DIFFERENT = {
    "explain insert into s.t (a) values (1)": "rights on sequences are checked with the plan",
    "explain insert into s.t default values": "rights on sequences are checked with the plan",
    "reindex schema own": "PostgreSQL refuses it inside of a transaction first (25001)",
}
"""Statements in which PostgreSQL says something else of some role, with the reason."""


def split(script: str) -> list[str]:
    return [one.strip() for one in script.split(";") if one.strip()]


@pytest.fixture(scope="module")
def scene() -> Iterator[Session]:
    with belvedere.connect(":memory:", autocommit=True) as con:
        assert isinstance(con.session, Session)
        for statement in split(SETUP):
            con.session.execute(statement)
        yield con.session


def judge_here(session: Session, role: str, statement: str) -> str:
    """Run a statement as a role and undo it; what it says of the role's right."""
    session.execute(f"set session authorization {role}")
    session.execute("begin")
    try:
        session.execute(statement)
        return ALLOWED
    except Error as error:
        return DENIED if error.sqlstate == DENIED else ALLOWED
    finally:
        session.execute("rollback")
        session.execute("reset session authorization")


def judge_subscription(session: Session, role: str, name: str) -> str:
    session.execute(f"set session authorization {role}")
    try:
        open_subscription(session, name).close()
        return ALLOWED
    except Error as error:
        return str(error.sqlstate)
    finally:
        session.execute("reset session authorization")


def print_matrix(rows: dict[str, list[str]]) -> str:
    width = max(len(one) for one in rows)
    head = f"{'statement':{width}} | " + " | ".join(f"{role:5}" for role in ROLES)
    lines = [head, "-" * len(head)]
    for statement, cells in rows.items():
        lines.append(f"{statement:{width}} | " + " | ".join(f"{cell:5}" for cell in cells))
    return "\n".join(line.rstrip() for line in lines) + "\n"


def test_every_role_may_do_what_the_matrix_says(
    scene: Session, pytestconfig: pytest.Config
) -> None:
    rows = {one: [judge_here(scene, role, one) for role in ROLES] for one in SHARED + ONLY_HERE}
    for name in SUBSCRIPTIONS:
        rows[f"subscribe {name}"] = [judge_subscription(scene, role, name) for role in ROLES]
    made = print_matrix(rows)
    if pytestconfig.getoption("--update"):
        GOLDEN.write_text(made)
    assert made == GOLDEN.read_text()
    assert len(rows) * len(ROLES) >= 800


def read_matrix() -> dict[str, dict[str, str]]:
    lines = GOLDEN.read_text().splitlines()[2:]
    found = {}
    for line in lines:
        statement, *cells = [one.strip() for one in line.rsplit(" | ", len(ROLES))]
        found[statement] = dict(zip(ROLES, cells))
    return found


@pytest.fixture(scope="module")
def there(postgres: Postgres) -> Iterator[psycopg.Connection[object]]:
    with postgres.connect(autocommit=True, prepare_threshold=None) as con:
        for statement in split(SETUP):
            con.execute(statement)
        try:
            yield con
        finally:
            for statement in split(TEARDOWN):
                con.execute(statement)


def judge_there(con: psycopg.Connection[object], role: str, statement: str) -> str:
    con.execute(f"set session authorization {role}")
    con.execute("begin")
    try:
        if statement.startswith("copy") and statement.endswith("stdout"):
            with con.cursor().copy(statement) as rows:  # type: ignore[arg-type]
                for _ in rows:
                    pass
        else:
            con.execute(statement)  # type: ignore[arg-type]
        return ALLOWED
    except psycopg.Error as error:
        return DENIED if error.sqlstate == DENIED else ALLOWED
    finally:
        con.execute("rollback")
        con.execute("reset session authorization")


def test_postgres_says_the_same(there: psycopg.Connection[object]) -> None:
    golden = read_matrix()
    wrong = []
    for statement in SHARED:
        for role in ROLES:
            said = judge_there(there, role, statement)
            if said != golden[statement][role] and statement not in DIFFERENT:
                wrong.append(f"{role}: {statement}: there {said}, here {golden[statement][role]}")
    assert not wrong, "\n".join(wrong)


def list_statement_kinds() -> set[type]:
    return set(typing.get_args(s.Statement))


def test_every_kind_of_statement_has_a_rule() -> None:
    assert set(RULES) == list_statement_kinds()


def test_every_kind_of_statement_is_in_the_matrix(scene: Session) -> None:
    seen: set[type] = set()
    for text in [
        *SHARED,
        *ONLY_HERE,
        "execute p",
        "commit",
        "rollback",
        "rollback to x",
        "listen x",
    ]:
        (parsed,) = bind.parse_statements(text)
        tree = parsed.tree
        name = type(tree).__name__
        seen.add(type(tree))
        if name.endswith(("Tree", "Form")) and "broken" not in text:
            scene.execute("set session authorization sup")
            seen.add(type(bind.bind_declared_types(scene, parsed, ())))
            scene.execute("reset session authorization")
    missing = {one.__name__ for one in list_statement_kinds() - seen}
    assert missing <= {"ReleaseSavepoint"}, missing
