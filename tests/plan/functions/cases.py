"""Generated calls of every registered function, and how PostgreSQL is asked for their answers."""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Iterator
from dataclasses import dataclass

from belvedere.plan.functions.cast.casts import base_casts, text_parser
from belvedere.plan.functions.core.function import (
    Function,
    FunctionKind,
    PseudoType,
    type_by_name,
    type_name,
)
from belvedere.plan.functions.logic import system_catalog
from belvedere.plan.functions.registry import functions_by_name, resolve
from belvedere.types import NAMED_OBJECT_KINDS, Kind, SqlType
from tests.plan.functions.arguments import SPECIAL
from tests.plan.functions.corpus import POLYMORPHIC, VALUES
from tests.plan.functions.inputs import INPUTS

FULL = os.environ.get("BELVEDERE_PROFILE") == "full"
SEED = int(os.environ.get("BELVEDERE_SEED", "20261115"))
CALLS_PER_OVERLOAD = 3000 if FULL else 60

_KEYWORD_CALLS = {
    "and": "({0} AND {1})",
    "or": "({0} OR {1})",
    "not": "(NOT {0})",
    "coalesce": None,
    "greatest": None,
    "least": None,
    "nullif": None,
}


@dataclass(frozen=True, slots=True)
class Call:
    """One call: argument texts (None is NULL) of concrete types, and the PostgreSQL expression."""

    function: Function
    types: tuple[SqlType, ...]
    result: SqlType
    arguments: tuple[str | None, ...]

    @property
    def expression(self) -> str:
        return postgres_call(
            self.function, [literal(t, a) for t, a in zip(self.types, self.arguments)]
        )

    def values(self) -> list[object]:
        return [None if a is None else parser_for(t)(a) for t, a in zip(self.types, self.arguments)]


def parser_for(sql_type: SqlType) -> object:
    if sql_type.kind is Kind.CHAR and sql_type.length is not None:
        length = sql_type.length
        return lambda text: text.ljust(length)
    return text_parser(sql_type)


def literal(sql_type: SqlType, text: str | None) -> str:
    name = type_name(sql_type)
    if name == "bpchar" and sql_type.length is not None:
        name = f"char({sql_type.length})"
    if text is None:
        return f"NULL::{name}"
    return f"{quote(text)}::{name}"


def quote(text: str) -> str:
    body = text.replace("'", "''")
    if "\\" in body:
        return "E'" + body.replace("\\", "\\\\") + "'"
    return f"'{body}'"


def postgres_call(function: Function, arguments: list[str]) -> str:
    """The call as PostgreSQL writes it."""
    name = function.name
    if name == "cast":
        return f"({arguments[0]})::{type_name(function.result)}"
    if name.startswith("is "):
        words = name.upper()
        return (
            f"(({arguments[0]}) {words} ({arguments[1]}))"
            if len(arguments) == 2
            else f"(({arguments[0]}) {words})"
        )
    if name.startswith("extract "):
        return f"extract({name.removeprefix('extract ')} FROM {arguments[0]})"
    if name == "array subscript":
        return f"({arguments[0]})[{arguments[1]}]"
    if name == "array slice":
        return f"({arguments[0]})[{arguments[1]}:{arguments[2]}]"
    if name in _KEYWORD_CALLS:
        pattern = _KEYWORD_CALLS[name]
        return pattern.format(*arguments) if pattern else f"{name}({', '.join(arguments)})"
    if not name[0].isalpha() and name[0] != "_":
        if len(arguments) == 1:
            return f"({name} ({arguments[0]}))"
        return f"(({arguments[0]}) {name} ({arguments[1]}))"
    if not function.arguments and function.name in (
        "current_date",
        "current_timestamp",
        "localtime",
        "localtimestamp",
        "current_user",
        "session_user",
        "current_catalog",
        "current_schema",
    ):
        return name
    call = f'pg_catalog."{name}"({", ".join(arguments)})'
    if function.kind is FunctionKind.SET:
        return f"(SELECT array_agg(v::text) FROM {call} v)"
    return call


OF_RECORDS = frozenset(
    {"json record", "row key", "json_agg of records", "json_each", "json_each_text"}
    | {"_pg_expandarray", "pg_get_keywords", "pg_available_extensions"}
)
"""What the binder makes of row values, and functions whose rows are wider than one column: whole
statements test them (tests/slt/files/records.slt)."""


OWN = frozenset({"current_user", "session_user", "current_database", "current_schema", "version"})
OWN |= {function.name for function in system_catalog.FUNCTIONS}
"""What every server answers for itself."""


def overloads(kind: FunctionKind) -> list[Function]:
    known = [
        several for name, several in functions_by_name().items() if name not in OF_RECORDS | OWN
    ]
    functions = [f for several in known for f in several if f.kind is kind]
    return functions + (casts_without_names() if kind is FunctionKind.SCALAR else [])


def casts_without_names() -> list[Function]:
    """Casts but those to and from the names of objects, which depend on what exists
    (tests/interfaces/server/test_pg_catalog.py)."""
    return [
        function
        for function in base_casts()
        if not {one.kind for one in (*function.arguments, function.result)} & NAMED_OBJECT_KINDS
    ]


def concrete(function: Function) -> Iterator[tuple[tuple[SqlType, ...], SqlType]]:
    """The argument types to try, pseudo-types settled, with the result type."""
    arguments = function.arguments
    if function.variadic:
        arguments = (*arguments, arguments[-1])
    polys = [a for a in arguments if isinstance(a, PseudoType)]
    if not polys:
        assert isinstance(function.result, SqlType)
        yield tuple(a for a in arguments if isinstance(a, SqlType)), function.result
        return
    choices = max(len(POLYMORPHIC[poly.value]) for poly in polys)
    for i in range(choices):
        names = [
            POLYMORPHIC[a.value][i % len(POLYMORPHIC[a.value])]
            if isinstance(a, PseudoType)
            else type_name(a)
            for a in arguments
        ]
        types = tuple(t for t in map(type_by_name, names) if isinstance(t, SqlType))
        resolved = resolve(function.name, types)
        if resolved.function is function and resolved.argument_types == types:
            yield types, resolved.result_type


def calls(function: Function) -> list[Call]:
    """A seeded sample of calls over the edge values, each with NULLs mixed in."""
    generator = random.Random(f"{SEED} {function.signature} {type_name(function.result)}")
    found: list[Call] = []
    for types, result in concrete(function):
        lists = [_candidates(function, i, t) for i, t in enumerate(types)]
        size = 1
        for one in lists:
            size *= len(one)
        if size <= max(CALLS_PER_OVERLOAD, 150):
            chosen: list[tuple[str | None, ...]] = list(itertools.product(*lists))
        else:
            chosen = [tuple(map(generator.choice, lists)) for _ in range(CALLS_PER_OVERLOAD)]
        for i in range(len(types)):
            chosen.append(
                tuple(None if i == j else generator.choice(one) for j, one in enumerate(lists))
            )
        found += [Call(function, types, result, arguments) for arguments in chosen]
    return found


def _candidates(function: Function, position: int, sql_type: SqlType) -> list[str]:
    special = SPECIAL.get((function.signature, position)) or SPECIAL.get((function.name, position))
    if special is not None:
        return special
    if function.name == "cast" and type_name(sql_type) == "text":
        return VALUES["text"] + INPUTS.get(type_name(function.result), [])
    return VALUES[type_name(sql_type)]
