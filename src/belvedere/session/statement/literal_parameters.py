"""Makes parameters of the literals of a bound statement, so that one plan serves all texts of its
shape (`sql.parse.lexical.literal_shape`).

The statement is bound with its literals first, so names, types, casts and the names of its columns
are those that it has; then the literals in the plan are replaced. Each literal of the text is

- *free*: it is in the plan, and only there. It becomes a parameter; so does what is computed from
  free literals alone, a cast or `date '2024-01-01' + 7`.
- *fixed*: it is part of the form of the statement: `ORDER BY 1`, `numeric(10, 2)`, `interval '1'
  day`. Texts with other ones have other plans.

A statement is not served this way when one of its literals is neither: when it vanished while the
statement was bound, because it was compared with another one (`SELECT a + 1 .. GROUP BY a + 1`) or
named an object of the catalog.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Volatility
from belvedere.plan.transform import (
    rebuild_expressions,
    rebuild_inputs,
    rebuild_operands,
    walk_plan,
    with_subplan,
)
from belvedere.session.statement.compiled_statement import CompiledStatement
from belvedere.session.statement.python_types import infer_sql_type
from belvedere.sql.bind.binder import LiteralSource
from belvedere.sql.parse import tree as t
from belvedere.sql.parse.lexical.literal_shape import (
    SplitText,
    find_literal_starts,
    read_string_literal,
)
from belvedere.sql.statements import DataPlan
from belvedere.types import Kind, Row, SqlType
from belvedere.values.datetimes import UTC, in_zone

_AFTER_SPACE = re.compile(r"\s*")
Read = Callable[[Sequence[str]], Any]
"""From the literals of a text, as written, to the value of one parameter."""


class LiteralTypesDiffer(Exception):
    """A literal has another type than the plan was made for."""


class ParameterizedStatement(NamedTuple):
    """`readers` give the parameters of `data`, `literal_types` are those that they have as
    literals; `fixed` are the numbers of the fixed literals."""

    data: DataPlan
    readers: tuple[Read, ...]
    literal_types: tuple[SqlType, ...]
    fixed: tuple[int, ...]


class LiteralPlan:
    """A plan of a shape, and what reads the literals for it."""

    __slots__ = ("entry", "readers")

    def __init__(self, entry: CompiledStatement, readers: tuple[Read, ...]) -> None:
        self.entry = entry
        self.readers = readers

    def read_values(self, written: Sequence[str]) -> Row:
        zone = self.entry.data.zone
        if zone is UTC:
            return tuple([read(written) for read in self.readers])
        with in_zone(zone):
            return tuple([read(written) for read in self.readers])


class _FreeLiteral(NamedTuple):
    constant: t.Constant
    number: int
    negative: bool


def parameterize_literals(
    text: str,
    split: SplitText,
    tree: Any,
    data: DataPlan,
    sources: dict[int, LiteralSource],
) -> ParameterizedStatement | None:
    """The statement with parameters for its free literals; None when that is not possible."""
    starts = find_literal_starts(text, split)
    if starts is None:
        return None
    numbers = {at: number for number, at in enumerate(starts)}
    free: dict[int, _FreeLiteral] = {}
    for constant, place in _walk_constants(tree, _ConstantPlace.VALUE):
        found = _match_constant_to_literal(text, split, numbers, constant)
        if found is not None and place is not _ConstantPlace.ORDINAL:
            if place is _ConstantPlace.COMPARED:
                return None
            free[id(constant)] = found
    if not free or _has_ambiguous_names(data.plan):
        return None
    maker = _ParameterMaker(free, sources)
    plan = maker.replace_literals_in_plan(data.plan)
    if maker.met != free.keys() or maker.untyped:
        return None
    plan, order = _renumber_parameters(plan)
    free_numbers = {one.number for one in free.values()}
    return ParameterizedStatement(
        replace(data, plan=plan, parameters=tuple(maker.types[i] for i in order)),
        tuple(maker.readers[i] for i in order),
        tuple(maker.literal_types[i] for i in order),
        tuple(i for i in range(len(starts)) if i not in free_numbers),
    )


def replace_parameters_by_literals(
    plan: n.Node, values: Sequence[Any], types: Sequence[SqlType]
) -> n.Node:
    """The plan with literals for its parameters."""

    def make_literal(one: e.Parameter) -> e.Expression:
        return e.Literal(values[one.index - 1], types[one.index - 1])

    return _replace_parameters(plan, make_literal)


# -- literals of the tree --------------------------------------------------------------------------


class _ConstantPlace:
    """Where a constant stands: as a value, as the number of a column, or where the binder compares
    expressions with one another."""

    VALUE, ORDINAL, COMPARED = range(3)


def _walk_constants(tree: Any, place: int) -> Iterator[tuple[t.Constant, int]]:
    match tree:
        case t.Constant():
            yield tree, place
        case t.OrderItem():
            yield from _walk_key_constants((tree.expression,))
        case t.WindowSpec() | t.GroupingSets():
            for name in tree.__struct_fields__:
                yield from _walk_constants(getattr(tree, name), _ConstantPlace.COMPARED)
        case msgspec.Struct():
            for name in tree.__struct_fields__:
                keys = isinstance(tree, t.Select) and name in ("groups", "distinct_on")
                value = getattr(tree, name)
                yield from (
                    _walk_key_constants(value or ()) if keys else _walk_constants(value, place)
                )
        case tuple():
            for one in tree:
                yield from _walk_constants(one, place)


def _walk_key_constants(items: tuple[Any, ...]) -> Iterator[tuple[t.Constant, int]]:
    for one in items:
        ordinal = isinstance(one, t.Constant)
        yield from _walk_constants(
            one, _ConstantPlace.ORDINAL if ordinal else _ConstantPlace.COMPARED
        )


def _match_constant_to_literal(
    text: str, split: SplitText, numbers: dict[int, int], constant: t.Constant
) -> _FreeLiteral | None:
    """The literal that a constant is written as, if that alone is its value. `numbers` are those of
    the literals, by where they begin."""
    if constant.kind not in ("string", "integer", "number"):
        return None
    value = str(constant.value)
    negative = constant.kind != "string" and value.startswith("-")
    at = constant.at
    if negative:
        at = _AFTER_SPACE.match(text, at + 1).end()  # type: ignore[union-attr]
    number = numbers.get(at)
    if number is None:
        return None
    written = split.literals[number]
    if constant.kind == "string":
        written = read_string_literal(written) if written[0] == "'" else ""
    same = ("-" + written if negative else written) == value
    return _FreeLiteral(constant, number, negative) if same else None


def _has_ambiguous_names(plan: n.Node) -> bool:
    """Whether a select list has one name twice: whether ORDER BY may use the name depends on
    whether both are the same expression."""
    lists = [node.fields for node in walk_plan(plan) if isinstance(node, n.Project)]
    return any(len({field.name for field in one}) < len(one) for one in lists)


# -- parameters of the plan ------------------------------------------------------------------------


class _ParameterMaker:
    def __init__(self, free: dict[int, _FreeLiteral], sources: dict[int, LiteralSource]) -> None:
        self.free = free
        self.sources = sources
        self.readers: list[Read] = []
        self.types: list[SqlType] = []
        self.literal_types: list[SqlType] = []
        self.met: set[int] = set()
        self.untyped = False

    def replace_literals_in_plan(self, node: n.Node) -> n.Node:
        changed = rebuild_expressions(node, self.replace_literals_in_expression)
        return rebuild_inputs(changed, self.replace_literals_in_plan)

    def replace_literals_in_expression(self, one: e.Expression) -> e.Expression:
        if isinstance(one, e.Literal):
            return self.replace_literal(one)
        new = with_subplan(
            rebuild_operands(one, self.replace_literals_in_expression),
            self.replace_literals_in_plan,
        )
        if new is one:
            return one
        match new:
            case e.Call(function=function) if function.name in _COMPARISONS:
                left, right = new.arguments
                pair = (
                    self.narrow_compared_integer(left, right),
                    self.narrow_compared_integer(right, left),
                )
                return self.fold_call_into_parameter(replace(new, arguments=pair))
            case e.Call() | e.Cast():
                return self.fold_call_into_parameter(new)
            case e.InList():
                items = [self.narrow_compared_integer(item, new.operand) for item in new.items]
                return replace(new, items=tuple(items))
            case _:
                return new

    def replace_literal(self, literal: e.Literal) -> e.Expression:
        source = self.sources.get(id(literal))
        found = None if source is None else self.free.get(id(source.constant))
        if source is None or found is None:
            return literal
        self.met.add(id(source.constant))
        self.untyped |= literal.type.kind is Kind.UNKNOWN
        return self.add_parameter(_make_literal_reader(found, source), literal.type)

    def add_parameter(
        self, read: Read, type_: SqlType, literal_type: SqlType | None = None
    ) -> e.Parameter:
        self.readers.append(read)
        self.types.append(type_)
        self.literal_types.append(literal_type or type_)
        return e.Parameter(len(self.readers), type_)

    def fold_call_into_parameter(self, call: e.Call | e.Cast) -> e.Expression:
        """What is computed from parameters and constants alone is one parameter."""
        function = call.function
        given = call.arguments if isinstance(call, e.Call) else (call.operand,)
        if not all(isinstance(one, e.Literal | e.Parameter) for one in given):
            return call
        if function.volatility is not Volatility.IMMUTABLE or function.environment:
            return call
        if any(isinstance(one, e.Literal) and one.value is None for one in given):
            return call
        compute = function.python
        if not callable(compute):
            return call
        reads = [self.make_operand_reader(one) for one in given]
        if len(reads) == 1:
            only = reads[0]
            return self.add_parameter(lambda written: compute(only(written)), call.type)
        return self.add_parameter(
            lambda written: compute(*[read(written) for read in reads]), call.type
        )

    def make_operand_reader(self, one: e.Expression) -> Read:
        if isinstance(one, e.Parameter):
            return self.readers[one.index - 1]
        assert isinstance(one, e.Literal)
        value = one.value
        return lambda _: value

    def narrow_compared_integer(self, one: e.Expression, other: e.Expression) -> e.Expression:
        """An integer that is compared with a smaller one has the smaller type, so that a key of
        that type is of use, as it is for the literal."""
        bits = _BITS.get(other.type.kind)
        if not isinstance(one, e.Parameter) or bits is None or _BITS.get(one.type.kind, 0) <= bits:
            return one
        read, low, high = self.readers[one.index - 1], -(2**bits), 2**bits

        def read_narrow(written: Sequence[str]) -> Any:
            value = read(written)
            if not low <= value < high:
                raise LiteralTypesDiffer
            return value

        return self.add_parameter(read_narrow, SqlType(other.type.kind), one.type)


_COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
_BITS = {Kind.SMALLINT: 15, Kind.INTEGER: 31, Kind.BIGINT: 63}


def _make_literal_reader(found: _FreeLiteral, source: LiteralSource) -> Read:
    number, read = found.number, source.read
    if found.constant.kind == "string":
        if source.literal.type.kind is Kind.TEXT:
            return lambda written: written[number][1:-1].replace("''", "'")
        return lambda written: read(read_string_literal(written[number]))
    if not found.negative:
        return lambda written: read(written[number])
    wanted = source.literal.type

    def read_negative(written: Sequence[str]) -> Any:
        value = read("-" + written[number])
        if isinstance(value, int) and infer_sql_type(value) != wanted:
            raise LiteralTypesDiffer  # -2147483648 is an integer, 2147483648 is none
        return value

    return read_negative


def _renumber_parameters(plan: n.Node) -> tuple[n.Node, list[int]]:
    """The plan with its parameters numbered from 1, and which of the made ones each is."""
    places: dict[int, int] = {}

    def number_parameter(one: e.Parameter) -> e.Expression:
        place = places.setdefault(one.index - 1, len(places) + 1)
        return e.Parameter(place, one.type)

    return _replace_parameters(plan, number_parameter), list(places)


def _replace_parameters(plan: n.Node, change: Callable[[e.Parameter], e.Expression]) -> n.Node:
    def replace_in_expression(one: e.Expression) -> e.Expression:
        if isinstance(one, e.Parameter):
            return change(one)
        return with_subplan(rebuild_operands(one, replace_in_expression), replace_in_plan)

    def replace_in_plan(node: n.Node) -> n.Node:
        return rebuild_inputs(rebuild_expressions(node, replace_in_expression), replace_in_plan)

    return replace_in_plan(plan)
