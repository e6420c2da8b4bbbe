"""Statements run by Belvedere and by PostgreSQL, and their answers compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import belvedere
from tests.oracle.postgres import Postgres


class SideBySide:
    """A Belvedere connection beside an empty schema of PostgreSQL."""

    def __init__(self, con: belvedere.Connection, postgres: Postgres) -> None:
        self.con = con
        self.postgres = postgres
        for statement in ("DROP SCHEMA public CASCADE", "CREATE SCHEMA public"):
            assert postgres.run(statement).sqlstate is None

    def answers(self, statement: str, parameters: Sequence[Any] = ()) -> tuple[Any, Any]:
        """What Belvedere says and what PostgreSQL says: rows in a fixed order, or an SQLSTATE."""
        their_text = statement.replace("%", "%%").replace("?", "%s") if parameters else statement
        theirs = self.postgres.run(their_text, parameters or None)
        return self._own_answer(statement, parameters), theirs.sqlstate or _shown(theirs.rows)

    def require_same(self, statement: str, parameters: Sequence[Any] = ()) -> Any:
        """The answer that both give."""
        mine, theirs = self.answers(statement, parameters)
        assert mine == theirs, f"{statement} {parameters!r}"
        return mine

    def _own_answer(self, statement: str, parameters: Sequence[Any]) -> Any:
        try:
            cursor = self.con.execute(statement, parameters)
        except belvedere.Error as error:
            return error.sqlstate
        return _shown([] if cursor.description is None else cursor.fetchall())


def _shown(rows: Sequence[Any]) -> list[str]:
    return sorted(repr(tuple(row)) for row in rows)
