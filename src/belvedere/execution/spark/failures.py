"""Translation of Spark's failures into the engine's errors."""

from __future__ import annotations

import re

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from belvedere.errors import Corruption, Error, InvalidInput, Unavailable, Unsupported

FAILURES = (PySparkException, Py4JError)
"""The exceptions of a failed job: Spark's own, or (inside a broadcast) that of the Java bridge."""

_ENGINE_ERROR = re.compile(r"\[belvedere ([0-9A-Z]{5})\] ([^\n]*)")
_STORE_CLASSES = ("08", "53", "55", "57", "58")
"""SQLSTATE classes of failures of the store, not of the data."""
_DATA = re.compile(r"SQLSTATE: (22[0-9A-Z]{3})")


def failure_cause(error: Exception) -> str:
    """The line of a long error text that names the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    said = [line for line in lines if "Error" in line or "Exception" in line]
    told = [line for line in said if not line.startswith(("at ", "py4j", "Py4J"))]
    return (told or said or lines or [""])[-1][:500]


def is_engine_error(error: Exception) -> bool:
    """Whether a task raised an error of the engine."""
    return _ENGINE_ERROR.search(str(error)) is not None


def translate_failure(error: Exception) -> Error:
    """The engine's error for a failed job: the one that a task raised, InvalidInput for Spark's
    error about a value, else Unavailable."""
    text = str(error)
    found = _ENGINE_ERROR.search(text)
    if found is not None:
        sqlstate, message = found[1], found[2]
        kind = {"0A000": Unsupported, "XX001": Corruption}.get(sqlstate) or (
            Unavailable if sqlstate[:2] in _STORE_CLASSES else InvalidInput
        )
        return kind("a task of the job failed", sqlstate=sqlstate, detail=message[:500])
    state = (error.getSqlState() or "") if isinstance(error, PySparkException) else ""
    about_data = _DATA.search(text)
    if state.startswith("22") or about_data:
        chosen = state if state.startswith("22") else about_data[1] if about_data else state
        return InvalidInput(
            "invalid value in an expression", sqlstate=chosen, detail=text.splitlines()[0][:500]
        )
    return Unavailable("the spark job failed", sqlstate="58000", detail=text[:1000])
