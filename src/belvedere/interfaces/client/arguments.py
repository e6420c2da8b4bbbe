"""What a program gives to the doors: refused here, by name, when it is of another type."""

from __future__ import annotations

import operator
import threading
from collections.abc import Mapping, Sequence
from typing import Any

from belvedere.interfaces.exceptions import DataError, ProgrammingError

INTEGER_MAX = 2**63 - 1


def require_texts(sql: Any, freshness: Any = None) -> None:
    if not isinstance(sql, str):
        raise ProgrammingError("a statement must be text", sqlstate="42804")
    if not isinstance(freshness, str | None):
        raise ProgrammingError(
            "freshness must be text",
            sqlstate="42804",
            hint="use any, session, latest, a duration such as '250 ms', or a token",
        )


def require_sequence(parameters: Any) -> Sequence[Any]:
    if isinstance(parameters, str | bytes) or not isinstance(parameters, Sequence):
        raise ProgrammingError(
            "parameters must be a sequence or a mapping",
            sqlstate="42804",
            hint="use ? or $1 and a tuple, or :name and a dict",
        )
    return parameters


def require_parameters(parameters: Any) -> None:
    if not isinstance(parameters, Mapping):
        require_sequence(parameters)


def require_relation_name(name: Any) -> None:
    if not isinstance(name, str):
        raise ProgrammingError(
            "the name of a table or view must be text",
            sqlstate="42804",
            detail=f"given: {type(name).__name__}",
        )


def require_integer(what: str, value: Any, least: int = -INTEGER_MAX) -> int:
    """An integer of Python, numpy or others that the store can keep."""
    if type(value) is int and least <= value <= INTEGER_MAX:
        return value
    try:
        found = operator.index(value)
    except TypeError:
        found = INTEGER_MAX + 1
    if not least <= found <= INTEGER_MAX:
        raise ProgrammingError(
            f"{what} must be an integer" + (" of 0 or more" if least == 0 else ""),
            sqlstate="22023",
            detail=f"given: {value!r:.80}",
        )
    return found


def require_seconds(value: Any) -> None:
    """A number that a thread can wait for; None: for ever."""
    if value is None or (isinstance(value, int | float) and 0 <= value <= threading.TIMEOUT_MAX):
        return
    raise ProgrammingError(
        "timeout_s must be a number of seconds, or None",
        sqlstate="22023",
        detail=f"given: {value!r:.80}",
    )


def encode_copy_data(data: Any) -> bytes | bytearray | memoryview:
    """What a program writes to a COPY."""
    if isinstance(data, bytes | bytearray | memoryview):
        return data
    if not isinstance(data, str):
        raise ProgrammingError(
            "data of COPY must be text or bytes",
            sqlstate="42804",
            detail=f"given: {type(data).__name__}",
        )
    try:
        return data.encode()
    except UnicodeEncodeError as error:
        raise DataError("text is not valid unicode", sqlstate="22021", detail=str(error)) from None
