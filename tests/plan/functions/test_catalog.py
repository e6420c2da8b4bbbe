"""The registry says of its functions what PostgreSQL's own catalog says of them."""

from __future__ import annotations

import pytest

from belvedere.errors import InvalidInput
from belvedere.plan.functions import Function, FunctionKind, functions_by_name
from belvedere.plan.functions.cast.casts import CastContext, base_casts
from belvedere.plan.functions.core.function import (
    NAMED_TYPES,
    PseudoType,
    type_by_name,
    type_name,
)
from belvedere.plan.functions.registry import is_operator, postgres_names, resolve
from belvedere.plan.functions.text.byte_strings import quote_identifier
from belvedere.types import SqlType
from tests.oracle.postgres import Postgres
from tests.plan.functions.cases import OF_RECORDS

FUNCTIONS = [function for several in functions_by_name().values() for function in several]

# Grammar in PostgreSQL, not functions of its catalog.
GRAMMAR = {
    "and", "or", "not", "coalesce", "greatest", "least", "nullif", "current_date",
    "current_timestamp", "localtime", "localtimestamp", "array subscript", "array slice",
}  # fmt: skip


def in_grammar(function: Function) -> bool:
    name = function.name
    # Shorter calls of make_interval are default arguments in PostgreSQL.
    defaulted = name == "make_interval" and len(function.arguments) < 7
    defaulted |= name == "json_strip_nulls"
    listed = name.startswith("json_extract_path")  # the rest of them is an array there
    return (
        name in GRAMMAR
        or name in OF_RECORDS
        or name.startswith(("is ", "extract "))
        or defaulted
        or listed
    )


def _names(parameters: tuple[object, ...]) -> tuple[str, ...]:
    return tuple(type_name(one) for one in parameters)  # type: ignore[arg-type]


Key = tuple[str, tuple[str, ...]]


@pytest.fixture(scope="module")
def catalog(postgres: Postgres) -> dict[Key, list[tuple[str, bool, str, str]]]:
    """(name, argument types) -> (result, strict, volatility, kind) of functions and operators."""
    found: dict[Key, list[tuple[str, bool, str, str]]] = {}
    rows = postgres.run(
        """
        SELECT p.proname, ARRAY(SELECT typname FROM unnest(proargtypes) WITH ORDINALITY a(o, n)
                                JOIN pg_type t ON t.oid = a.o ORDER BY n)::text[],
               r.typname::text, proisstrict, provolatile::text, prokind::text, proretset
        FROM pg_proc p JOIN pg_type r ON r.oid = prorettype
        WHERE pronamespace = 'pg_catalog'::regnamespace
        UNION ALL
        SELECT oprname, array_remove(ARRAY[l.typname, r.typname]::text[], NULL), t.typname::text,
               proisstrict, provolatile::text, 'f', false
        FROM pg_operator LEFT JOIN pg_type l ON l.oid = oprleft JOIN pg_type r ON r.oid = oprright
        JOIN pg_type t ON t.oid = oprresult JOIN pg_proc p ON p.oid = oprcode
        """
    ).rows
    for name, arguments, result, strict, volatility, kind, is_set in rows:
        key = (name, tuple(_short(one) for one in arguments))
        found.setdefault(key, []).append(
            (_short(result), strict, volatility, "s" if is_set else kind)
        )
    return found


def _short(name: str) -> str:
    # PostgreSQL's internal types for names and for stored expressions are text here; so is void.
    text = {"name": "text", "_name": "_text", "pg_node_tree": "text", "void": "text"}
    name = text.get(name, name)
    return name[1:] + "[]" if name.startswith("_") else name


def _kind(function: Function) -> str:
    return {
        FunctionKind.SCALAR: "f",
        FunctionKind.SET: "s",
        FunctionKind.AGGREGATE: "a",
        FunctionKind.WINDOW: "w",
    }[function.kind]


@pytest.mark.parametrize("attribute", ["result", "strict", "volatility", "kind"])
def test_functions_are_declared_as_in_postgres(
    catalog: dict[Key, list[tuple[str, bool, str, str]]], attribute: str
) -> None:
    wrong: list[str] = []
    for function in FUNCTIONS:
        if in_grammar(function):
            continue
        known = catalog.get((function.name, _names(function.arguments)))
        if known is None:
            wrong.append(f"{function.signature} is not in PostgreSQL's catalog")
            continue
        declared = {
            "result": type_name(function.result),
            "strict": function.strict,
            "volatility": function.volatility.value[0],
            "kind": _kind(function),
        }[attribute]
        place = ("result", "strict", "volatility", "kind").index(attribute)
        # An aggregate's strictness is that of its transition function, which the catalog hides.
        if attribute == "strict" and function.kind in (FunctionKind.AGGREGATE, FunctionKind.WINDOW):
            continue
        if declared not in {one[place] for one in known}:
            wrong.append(f"{function.signature} {attribute}: {declared}, PostgreSQL {known}")
    assert not wrong, "\n".join(wrong)


def test_casts_are_those_of_postgres(postgres: Postgres) -> None:
    """Every cast of PostgreSQL between types we have exists here, in the same context."""
    types = sorted({type_name(one) for f in base_casts() for one in (*f.arguments, f.result)})
    rows = postgres.run(
        "SELECT s.typname::text, t.typname::text, castcontext::text FROM pg_cast "
        "JOIN pg_type s ON s.oid = castsource JOIN pg_type t ON t.oid = casttarget "
        "WHERE s.oid <> t.oid AND s.typname = ANY(%s) AND t.typname = ANY(%s)",
        (types, types),
    ).rows
    assert len(rows) > 40
    wrong = [(s, t, c) for s, t, c in rows if _context(s, t) != c]
    assert not wrong


def _context(source: str, target: str) -> str | None:
    from belvedere.errors import InvalidInput
    from belvedere.plan.functions import cast_function
    from belvedere.plan.functions.core.function import type_by_name

    left, right = type_by_name(source), type_by_name(target)
    assert isinstance(left, SqlType)
    assert isinstance(right, SqlType)
    for context in CastContext:
        try:
            cast_function(left, right, context)
        except InvalidInput:
            continue
        return context.name[0].lower()
    return None


def test_operators_are_told_from_names() -> None:
    assert is_operator("+")
    assert is_operator("is distinct from")
    assert not is_operator("lower")


def test_reserved_words_are_quoted_as_in_postgres(postgres: Postgres) -> None:
    words = [word for (word,) in postgres.run("SELECT word FROM pg_get_keywords()").rows]
    assert len(words) > 400
    expected = postgres.evaluate([f"quote_ident('{word}')" for word in words])
    wrong = [w for w, value in zip(words, expected) if quote_identifier(w) != value.text]
    assert not wrong


def test_list_of_postgres_names_is_that_of_the_oracle(postgres: Postgres) -> None:
    """What users can call: not the functions on internal values, nor triggers."""
    names = postgres.run(
        "SELECT proname::text FROM pg_proc WHERE pronamespace = 'pg_catalog'::regnamespace "
        "AND prorettype NOT IN ('trigger'::regtype, 'internal'::regtype) "
        "AND NOT 'internal'::regtype = ANY (proargtypes) "
        "UNION SELECT oprname::text FROM pg_operator"
    ).rows
    assert postgres_names() == {name for (name,) in names}


_CONCRETE = {"any": "int4", "anyelement": "int4", "anyarray": "int4[]", "anynonarray": "int4"} | {
    "anycompatible": "int4",
    "anycompatiblearray": "int4[]",
    "anycompatiblenonarray": "int4",
}


def _type(name: str) -> SqlType:
    found = type_by_name(name)
    assert not isinstance(found, PseudoType)
    return found


def test_no_overload_of_a_known_function_is_missing(postgres: Postgres) -> None:
    """A call that PostgreSQL takes must not be said to be of a function that does not exist."""
    types = [*NAMED_TYPES, "int4[]", "int8[]", "float8[]", "numeric[]", "text[]", *_CONCRETE]
    overloads = postgres.connection.execute(
        "SELECT proname::text, provariadic <> 0, ARRAY(SELECT CASE WHEN t.typname LIKE '\\_%%' "
        "THEN substr(t.typname, 2) || '[]' ELSE t.typname END::text "
        "FROM unnest(proargtypes) WITH ORDINALITY u (o, i) JOIN pg_type t ON t.oid = o ORDER BY i) "
        "FROM pg_proc p WHERE pronamespace = 'pg_catalog'::regnamespace AND NOT EXISTS "
        "(SELECT 1 FROM pg_aggregate WHERE aggfnoid = p.oid AND aggkind = 'h')"
    ).fetchall()
    missing, tried = [], 0
    for name, variadic, arguments in overloads:
        if name not in functions_by_name() or not set(arguments) <= set(types):
            continue
        given = [_type(_CONCRETE.get(one, one)) for one in arguments]
        if variadic and arguments[-1] != "any":
            given[-1] = given[-1].element or given[-1]
        tried += 1
        try:
            resolve(name, given)
        except InvalidInput as error:
            if error.sqlstate == "42883":
                missing.append(f"{name}({', '.join(arguments)})")
    assert not missing, "\n".join(missing)
    assert tried > 400
