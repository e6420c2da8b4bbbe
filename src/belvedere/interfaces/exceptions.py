"""PEP 249's exceptions, each with `sqlstate`, `position`, `detail` and `hint`.

| error of the engine | SQLSTATE | exception |
|---|---|---|
| InvalidInput | class 22 | DataError |
| InvalidInput | class 23 | IntegrityError |
| InvalidInput | any other | ProgrammingError |
| Retry, Unavailable | 40, 08, 53, 57, .. | OperationalError |
| Unsupported | 0A000 | NotSupportedError |
| Corruption | XX001 | InternalError |
"""

from __future__ import annotations

from typing import Any

from belvedere import errors


class Warning(Exception):  # noqa: A001 - PEP 249's name
    """Required by PEP 249; never raised."""


class Error(Exception):
    """The base of all exceptions. `position` counts characters of the statement from 1. The text
    has detail and hint, as psycopg's has."""

    def __init__(
        self,
        message: str = "",
        *,
        sqlstate: str = "HY000",
        position: int | None = None,
        detail: str | None = None,
        hint: str | None = None,
        facts: dict[str, Any] | None = None,
    ) -> None:
        more = (("detail", detail), ("hint", hint))
        lines = [f"{word}: {text}" for word, text in more if text and text not in message]
        super().__init__("\n".join([message, *lines]))
        self.sqlstate = sqlstate
        self.position = position
        self.detail = detail
        self.hint = hint
        self.facts = facts or {}


class InterfaceError(Error):
    """The interface was used wrongly: a closed cursor, a fetch before a query."""


class DatabaseError(Error):
    pass


class DataError(DatabaseError):
    pass


class OperationalError(DatabaseError):
    pass


class IntegrityError(DatabaseError):
    pass


class InternalError(DatabaseError):
    pass


class ProgrammingError(DatabaseError):
    pass


class NotSupportedError(DatabaseError):
    pass


def translate_error(error: errors.Error) -> DatabaseError:
    """Translate an error of the engine to its PEP 249 exception."""
    return _exception_class(error)(
        str(error),
        sqlstate=error.sqlstate,
        position=error.position,
        detail=error.detail,
        hint=error.hint,
        facts=error.facts,
    )


def _exception_class(error: errors.Error) -> type[DatabaseError]:
    match error:
        case errors.Unsupported():
            return NotSupportedError
        case errors.Retry() | errors.Unavailable():
            return OperationalError
        case errors.Corruption():
            return InternalError
        case _ if error.sqlstate.startswith("22"):
            return DataError
        case _ if error.sqlstate.startswith("23"):
            return IntegrityError
        case _:
            return ProgrammingError
