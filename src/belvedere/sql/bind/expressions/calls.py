"""Binds function calls: scalar ones, aggregates, windows, sets, and special ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import msgspec

from belvedere.catalog.model import Sequence as SequenceObject
from belvedere.errors import Error, InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import FunctionKind
from belvedere.plan.functions.nested.json_records import RECORD, RECORDS
from belvedere.plan.functions.registry import (
    functions_by_name,
    list_result_columns,
    postgres_names,
)
from belvedere.sql.bind.binder import AGGREGATE, GROUPING, SET, Env
from belvedere.sql.bind.expressions.coerce import (
    coerce,
    default_to_text,
    make_call,
    require_boolean,
    resolve_call,
    specialize_function,
    unify_types,
    with_position,
)
from belvedere.sql.bind.expressions.outer_aggregates import add_outer_aggregate, find_outer_depth
from belvedere.sql.bind.expressions.row_values import (
    bind_argument,
    bind_record_items,
    make_json_record,
)
from belvedere.sql.bind.expressions.windows import bind_window
from belvedere.sql.bind.scope import suggest_names
from belvedere.sql.parse import tree as t
from belvedere.types import (
    BIGINT,
    BOOLEAN,
    INTEGER,
    TEXT,
    UNCOMPARED_KINDS,
    Kind,
    SqlType,
    record_of,
)


def bind_call(env: Env, tree: t.FunctionCall) -> e.Expression:
    name = function_name(tree)
    special = _SPECIAL.get(name)
    if special is not None:
        _refuse_aggregate_clauses(tree, name)
        return special(env, tree)
    kind = _find_function_kind(name, tree)
    if tree.over is not None:
        return bind_window(env, tree, name, kind)
    if kind is FunctionKind.AGGREGATE:
        return _bind_aggregate(env, tree, name)
    if kind is FunctionKind.WINDOW and tree.within is not None:
        raise Unsupported("hypothetical-set aggregate", position=tree.at + 1, name=name)
    if kind is FunctionKind.WINDOW:
        raise InvalidInput(
            "window function requires an over clause", sqlstate="42809", position=tree.at + 1
        )
    _refuse_aggregate_clauses(tree, name)
    if kind is FunctionKind.SET:
        return _bind_set_function(env, tree, name)
    return make_call(env.binder, name, _bind_arguments(env, tree), tree.at)


_SCHEMAS_OF_FUNCTIONS = ("public", "pg_catalog")
_EXPAND_ARRAY = ("information_schema", "_pg_expandarray")


def function_name(tree: t.FunctionCall) -> str:
    if len(tree.name) > 1:
        if tree.name[0] not in _SCHEMAS_OF_FUNCTIONS and tree.name != _EXPAND_ARRAY:
            raise InvalidInput(
                "schema does not exist", sqlstate="3F000", position=tree.at + 1, name=tree.name[0]
            )
        return tree.name[-1]
    return tree.name[0]


_IN_GRAMMAR = frozenset(
    """
    json_array json_arrayagg json_exists json_objectagg json_query json_scalar json_serialize
    json_table json_value merge_action xmlconcat xmlelement xmlexists xmlforest xmlparse xmlpi
    xmlroot xmlserialize xmltable
    """.split()
)
"""Functions that PostgreSQL calls by special syntax, so that its catalog does not list them."""


def _find_function_kind(name: str, tree: t.FunctionCall) -> FunctionKind:
    functions = functions_by_name().get(name)
    if functions is None and (name in postgres_names() or name in _IN_GRAMMAR):
        raise Unsupported("function is not supported", position=tree.at + 1, function=name)
    if functions is None or not (name[0].isalpha() or name[0] == "_"):
        raise InvalidInput(
            "function does not exist",
            sqlstate="42883",
            position=tree.at + 1,
            hint=suggest_names(name, functions_by_name()),
            name=name,
        )
    return functions[0].kind


def _refuse_aggregate_clauses(tree: t.FunctionCall, name: str) -> None:
    """Refuse what only aggregates and windows take."""
    wrong = None
    if tree.star or tree.distinct or tree.order_by:
        wrong = "* or distinct or order by is for aggregate functions only"
    elif tree.within is not None:
        wrong = "within group is for ordered-set aggregates only"
    elif tree.filter is not None:
        wrong = "filter is for aggregate functions only"
    elif tree.over is not None:
        wrong = "over is for window and aggregate functions only"
    if wrong is not None:
        raise InvalidInput(wrong, sqlstate="42809", position=tree.at + 1, name=name)


def _bind_arguments(env: Env, tree: t.FunctionCall) -> list[e.Expression]:
    if tree.variadic:
        raise Unsupported("variadic argument", position=tree.at + 1)
    if tree.names:
        tree = _reorder_named_arguments(tree)
    return [bind_argument(env, tree.name[-1], one) for one in tree.arguments]


_PARAMETERS = {
    "make_date": ("year", "month", "day"),
    "make_time": ("hour", "min", "sec"),
    "make_timestamp": ("year", "month", "mday", "hour", "min", "sec"),
    "make_interval": ("years", "months", "weeks", "days", "hours", "mins", "secs"),
}
"""The names of parameters, of functions that are called by them. An interval's are optional."""


def _reorder_named_arguments(tree: t.FunctionCall) -> t.FunctionCall:
    """A call with named arguments as one without."""
    name = tree.name[-1]
    known = _PARAMETERS.get(name)
    if known is None:
        raise Unsupported("named argument", position=tree.at + 1, function=name)
    plain = len(tree.arguments) - len(tree.names)
    given = dict(zip(tree.names, tree.arguments[plain:]))
    if len(given) < len(tree.names):
        raise InvalidInput(
            "argument name used more than once", sqlstate="42601", position=tree.at + 1
        )
    wrong = not given.keys() <= set(known[plain:])
    rest = known[plain:] if name != "make_interval" else _names_through_last(known[plain:], given)
    if wrong or (name != "make_interval" and len(given) < len(rest)):
        raise InvalidInput(
            "function does not exist", sqlstate="42883", position=tree.at + 1, name=name
        )
    zero = t.Constant("integer", "0", tree.at)
    arguments = (*tree.arguments[:plain], *(given.get(one, zero) for one in rest))
    return msgspec.structs.replace(tree, arguments=arguments, names=())


def _names_through_last(names: tuple[str, ...], given: dict[str, t.Expr]) -> tuple[str, ...]:
    last = max((i for i, name in enumerate(names) if name in given), default=-1)
    return names[: last + 1]


def is_scalar_call(tree: t.FunctionCall) -> bool:
    """Whether a function in FROM gives one value, so that it is a row of one column."""
    name = function_name(tree)
    return name not in _SPECIAL and _find_function_kind(name, tree) is FunctionKind.SCALAR


# -- aggregates ------------------------------------------------------------------------------------


def _bind_aggregate(env: Env, tree: t.FunctionCall, name: str) -> e.Expression:
    found = env.found
    if found is None or env.inside == "aggregate":
        where = "aggregate arguments" if env.inside else env.clause
        raise InvalidInput(
            f"aggregate functions are not allowed in {where}",
            sqlstate="42803",
            position=tree.at + 1,
        )
    inner = replace(env, inside="aggregate", windows=False, sets=False)
    made = bind_aggregate_call(inner, tree, name)
    depth = find_outer_depth(made)
    if depth:
        return add_outer_aggregate(env, made, depth, tree, name)
    if made not in found.aggregates:
        found.aggregates.append(made)
    return e.Column(AGGREGATE + found.aggregates.index(made), made.type, name)


def bind_aggregate_call(env: Env, tree: t.FunctionCall, name: str) -> e.AggregateCall:
    arguments = _bind_arguments(env, tree)
    if name == "json_agg" and any(_is_record(one) for one in arguments):
        name = RECORDS
    if tree.star and name != "count":
        raise InvalidInput("* is for count only", sqlstate="42883", position=tree.at + 1, name=name)
    if not tree.star and not arguments and name == "count":
        raise InvalidInput(
            "count(*) must be used to call count without arguments",
            sqlstate="42809",
            position=tree.at + 1,
        )
    condition = None
    if tree.filter is not None:
        inner = replace(env, clause="filter")
        condition = require_boolean(
            env.binder, env.binder.rules.expression(inner, tree.filter), "filter", tree.at
        )
    if tree.within is not None:
        return _bind_ordered_set(env, tree, name, arguments, condition)
    found, given = resolve_call(env.binder, name, arguments, tree.at)
    if found.function.direct is not None:
        raise InvalidInput("within group is required", sqlstate="42809", position=tree.at + 1)
    order = tuple([bind_sort_key(env, one) for one in tree.order_by])
    if tree.distinct:
        _check_distinct_order(given, order, tree.at)
    function = specialize_function(found, env.binder.zone)
    return e.AggregateCall(function, given, found.result_type, tree.distinct, condition, order)


def _is_record(argument: e.Expression) -> bool:
    return isinstance(argument, e.Call) and argument.function.name == RECORD


def _check_distinct_order(
    arguments: tuple[e.Expression, ...], order: tuple[e.SortKey, ...], at: int
) -> None:
    if not arguments:
        raise InvalidInput("distinct needs an argument", sqlstate="42809", position=at + 1)
    if any(key.expression not in arguments for key in order):
        raise InvalidInput(
            "in an aggregate with distinct, order by expressions must appear in argument list",
            sqlstate="42P10",
            position=at + 1,
        )


def _bind_ordered_set(
    env: Env,
    tree: t.FunctionCall,
    name: str,
    direct: list[e.Expression],
    condition: e.Expression | None,
) -> e.AggregateCall:
    assert tree.within is not None
    if tree.distinct:
        raise Unsupported("distinct of an ordered-set aggregate", position=tree.at + 1)
    keys = [bind_sort_key(env, one) for one in tree.within]
    values = [key.expression for key in keys]
    found, given = resolve_call(env.binder, name, [*direct, *values], tree.at)
    if found.function.direct is None:
        raise InvalidInput("not an ordered-set aggregate", sqlstate="42809", position=tree.at + 1)
    count = len(direct)
    order = tuple([replace(key, expression=one) for key, one in zip(keys, given[count:])])
    return e.AggregateCall(
        specialize_function(found, env.binder.zone),
        given[:count],
        found.result_type,
        False,
        condition,
        order,
    )


def bind_sort_key(env: Env, item: t.OrderItem) -> e.SortKey:
    expression = default_to_text(env.binder, env.binder.rules.expression(env, item.expression))
    return make_sort_key(expression, item, item.expression.at)


def make_sort_key(expression: e.Expression, item: t.OrderItem, at: int) -> e.SortKey:
    if expression.type.kind in UNCOMPARED_KINDS:
        raise InvalidInput(
            "could not identify an ordering operator", sqlstate="42883", position=at + 1
        )
    first = item.descending if item.nulls_first is None else item.nulls_first
    return e.SortKey(expression, item.descending, first)


# -- sets ------------------------------------------------------------------------------------------


def _bind_set_function(env: Env, tree: t.FunctionCall, name: str) -> e.Expression:
    if env.found is None or not env.sets:
        where = "aggregate arguments" if env.inside else env.clause
        raise Unsupported(
            f"set-returning function in {where}",
            position=tree.at + 1,
            hint="move it into from",
        )
    made = bind_table_call(replace(env, sets=False), tree)
    if len(made.fields) > 1:
        made = made._replace(fields=(n.Field(name, record_of(made.fields)),))
    env.found.sets.append(made)
    return e.Column(SET + len(env.found.sets) - 1, made.fields[0].type, name)


def bind_table_call(env: Env, tree: t.FunctionCall) -> n.TableCall:
    """A set-returning function, or any other as one row of one column."""
    name = function_name(tree)
    if _find_function_kind(name, tree) is not FunctionKind.SET:
        raise Unsupported("scalar function in from", position=tree.at + 1, name=name)
    found, given = resolve_call(env.binder, name, _bind_arguments(env, tree), tree.at)
    function = specialize_function(found, env.binder.zone)
    columns = list_result_columns(name, found.result_type)
    return n.TableCall(function, given, tuple([n.Field(*one) for one in columns]))


# -- functions with rules of their own -------------------------------------------------------------


def _bind_coalesce(env: Env, tree: t.FunctionCall) -> e.Expression:
    arguments = _require_arguments(replace(env, sets=False), tree)
    common, same = unify_types(env.binder, arguments, "coalesce", tree.at)
    return e.Coalesce(same, common)


def _bind_greatest_least(env: Env, tree: t.FunctionCall) -> e.Expression:
    arguments = _require_arguments(env, tree)
    _, same = unify_types(env.binder, arguments, tree.name[-1], tree.at)
    return make_call(env.binder, tree.name[-1], same, tree.at)


def _require_arguments(env: Env, tree: t.FunctionCall) -> list[e.Expression]:
    arguments = _bind_arguments(env, tree)
    if not arguments:
        raise InvalidInput("syntax error", sqlstate="42601", position=tree.at + 1)
    return arguments


def _bind_nullif(env: Env, tree: t.FunctionCall) -> e.Expression:
    if len(tree.arguments) != 2:
        raise InvalidInput("syntax error", sqlstate="42601", position=tree.at + 1)
    left, right = _bind_arguments(env, tree)
    equal = make_call(env.binder, "=", (left, right), tree.at)
    uncast = _is_compared_uncast(left.type.kind, right.type.kind)
    kept = left if uncast else equal.arguments[0]
    kind = TEXT if kept.type.kind is Kind.VARCHAR else kept.type  # compared as text
    return e.Case(((equal, e.Literal(None, kind)),), kept, kind)


_ALIKE = (
    frozenset({Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT}),
    frozenset({Kind.REAL, Kind.DOUBLE}),
    frozenset({Kind.DATE, Kind.TIMESTAMP, Kind.TIMESTAMPTZ}),
)


def _is_compared_uncast(left: Kind, right: Kind) -> bool:
    """Whether PostgreSQL compares the two as they are, so that neither changes its type."""
    return any(left in kinds and right in kinds for kinds in _ALIKE)


def _bind_pg_typeof(env: Env, tree: t.FunctionCall) -> e.Expression:
    """pg_typeof: known when the statement is bound. PostgreSQL's regtype is text here."""
    if len(tree.arguments) != 1:
        raise InvalidInput("function does not exist", sqlstate="42883", position=tree.at + 1)
    return e.Literal(_spell_type(_bind_arguments(env, tree)[0].type), TEXT)


def _spell_type(sql_type: SqlType) -> str:
    if sql_type.element is not None:
        return f"{_spell_type(sql_type.element)}[]"
    return sql_type.kind.value


def _bind_grouping(env: Env, tree: t.FunctionCall) -> e.Expression:
    if env.found is None or env.clause not in ("select", "having", "order by"):
        raise InvalidInput(
            f"grouping operations are not allowed in {env.clause}",
            sqlstate="42803",
            position=tree.at + 1,
        )
    made = tuple(_bind_arguments(replace(env, found=None), tree))
    if made not in env.found.groupings:
        env.found.groupings.append(made)
    return e.Column(GROUPING + env.found.groupings.index(made), INTEGER, "grouping")


def _bind_sequence_call(env: Env, tree: t.FunctionCall) -> e.Expression:
    verb = tree.name[-1]
    arguments = _bind_arguments(env, tree)
    if verb == "lastval":
        if arguments:
            raise InvalidInput("function does not exist", sqlstate="42883", position=tree.at + 1)
        return e.SequenceCall(verb, 0, "")
    counts = (2, 3) if verb == "setval" else (1,)
    if len(arguments) not in counts:
        raise InvalidInput("function does not exist", sqlstate="42883", position=tree.at + 1)
    first = arguments[0]
    if not isinstance(first, e.Literal) or not isinstance(first.value, str):
        raise Unsupported("sequence name that is not a constant", position=tree.at + 1)
    sequence = _find_sequence(env, first.value, tree.arguments[0].at)
    wanted = (BIGINT, BOOLEAN)
    rest = [coerce(env.binder, one, to, at=tree.at) for one, to in zip(arguments[1:], wanted)]
    if env.binder.rights is not None:
        env.binder.rights.add_sequence(sequence.id, verb)
    return e.SequenceCall(verb, sequence.id, sequence.name, tuple(rest))


def _find_sequence(env: Env, text: str, at: int) -> SequenceObject:
    parts = [part.strip('"') if part.startswith('"') else part.lower() for part in text.split(".")]
    schema = parts[0] if len(parts) == 2 else env.binder.schema
    try:
        return env.binder.catalog.require_relation(SequenceObject, parts[-1], schema)
    except Error as error:
        raise with_position(error, at) from None


def _make_alias_rule(name: str) -> Callable[[Env, t.FunctionCall], e.Expression]:
    return lambda env, tree: make_call(env.binder, name, _bind_arguments(env, tree), tree.at)


def _refuse_zoned_time(env: Env, tree: t.FunctionCall) -> e.Expression:
    raise Unsupported("type", position=tree.at + 1, type="time with time zone")


def _bind_row_to_json(env: Env, tree: t.FunctionCall) -> e.Expression:
    items = bind_record_items(env, tree.arguments[0]) if len(tree.arguments) == 1 else None
    if items is None:
        raise InvalidInput("function does not exist", sqlstate="42883", position=tree.at + 1)
    return make_json_record(env, items, tree.at)


_SPECIAL: dict[str, Callable[[Env, t.FunctionCall], e.Expression]] = {
    "coalesce": _bind_coalesce,
    "greatest": _bind_greatest_least,
    "least": _bind_greatest_least,
    "nullif": _bind_nullif,
    "pg_typeof": _bind_pg_typeof,
    "grouping": _bind_grouping,
    "row_to_json": _bind_row_to_json,
    "nextval": _bind_sequence_call,
    "currval": _bind_sequence_call,
    "setval": _bind_sequence_call,
    "lastval": _bind_sequence_call,
    "current_role": _make_alias_rule("current_user"),
    "user": _make_alias_rule("current_user"),
    "current_catalog": _make_alias_rule("current_database"),
    "current_time": _refuse_zoned_time,
}
