"""A call means the overload that PostgreSQL takes, for every combination of argument types."""

from __future__ import annotations

import itertools
import random

import pytest

from belvedere.errors import InvalidInput
from belvedere.plan.functions import FunctionKind, functions_by_name, require_common_type, resolve
from belvedere.plan.functions.core.function import NAMED_TYPES, type_by_name
from belvedere.types import SqlType
from tests.oracle.postgres import Postgres
from tests.plan.functions.cases import FULL, SEED, postgres_call
from tests.plan.functions.compare import EXCLUSIONS
from tests.plan.functions.test_catalog import in_grammar

TYPES = [*NAMED_TYPES, "int4[]", "text[]"]
CALLS_PER_NAME = 2000 if FULL else 60


def _typed(name: str) -> SqlType:
    found = type_by_name(name)
    assert isinstance(found, SqlType)
    return found


def _null(name: str) -> str:
    return "NULL" if name == "unknown" else f"NULL::{name}"


def _meaning(name: str, types: tuple[str, ...]) -> str:
    try:
        return str(resolve(name, [_typed(one) for one in types]).result_type)
    except InvalidInput as error:
        return error.sqlstate


def _names() -> list[str]:
    return sorted(
        name
        for name, several in functions_by_name().items()
        if not any(in_grammar(function) for function in several)
        and several[0].kind in (FunctionKind.SCALAR, FunctionKind.AGGREGATE)
        and all(f.kind is several[0].kind and f.direct is None for f in several)
        and name != "pg_get_expr"  # of a stored expression, which is text here
    )


WEIGHED = {entry["name"] for entry in EXCLUSIONS["resolution"]}

# Types PostgreSQL has and we do not: a call that means one of them there cannot be the same here.
FOREIGN = {
    "jsonb", "xml", "money", "bit", "inet", "cidr", "point", "time with time zone", "name",
    "name[]", '"char"',
    "tsvector", "tsquery", "bit varying", "numrange", "record", "xid8", "macaddr",
    "pg_lsn",
}  # fmt: skip


@pytest.mark.parametrize("name", _names())
def test_call_means_what_it_means_in_postgres(postgres: Postgres, name: str) -> None:
    functions = functions_by_name()[name]
    generator = random.Random(f"{SEED} {name}")
    calls: list[tuple[str, ...]] = []
    for count in sorted({len(function.arguments) for function in functions} - {0}):
        every = len(TYPES) ** count
        if every <= CALLS_PER_NAME * 8:
            calls += itertools.product(TYPES, repeat=count)
        else:
            calls += [
                tuple(generator.choice(TYPES) for _ in range(count)) for _ in range(CALLS_PER_NAME)
            ]
    expressions = [postgres_call(functions[0], [_null(one) for one in call]) for call in calls]
    wrong = []
    for call, value in zip(calls, postgres.evaluate(expressions)):
        expected = value.sqlstate or value.type or ""
        got = _meaning(name, call)
        if expected != got and not _excused(name, call, expected, got):
            wrong.append(f"{name}{call}: {got}, PostgreSQL {expected}")
    assert not wrong, "\n".join(wrong[:10])


def _excused(name: str, call: tuple[str, ...], expected: str, got: str) -> bool:
    if name in WEIGHED and "unknown" in call and expected == "42725":
        return True
    # The call was understood and then failed on its NULLs.
    return expected in FOREIGN or (expected.startswith("22") and not got[:2].isdigit())


@pytest.mark.parametrize("kinds", [2, 3])
def test_common_type_is_that_of_postgres(postgres: Postgres, kinds: int) -> None:
    generator = random.Random(SEED)
    calls = list(itertools.product(TYPES, repeat=2))
    if kinds == 3:
        calls = [tuple(generator.choice(TYPES) for _ in range(3)) for _ in range(600)]
    expressions = [f"coalesce({', '.join(map(_null, call))})" for call in calls]
    wrong = []
    for call, value in zip(calls, postgres.evaluate(expressions)):
        try:
            got = str(require_common_type([_typed(one) for one in call]))
        except InvalidInput as error:
            got = error.sqlstate
        if got != (value.sqlstate or value.type):
            wrong.append((call, got, value))
    assert not wrong, wrong[:10]
