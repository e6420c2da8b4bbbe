"""Translation of expressions to Python source text: their only definition in the Python tier.

`ExpressionWriter.write_value` returns text whose value is the SQL value, None for NULL;
`ExpressionWriter.write_truth` returns text that is true exactly when the expression is TRUE, which
is all a WHERE needs and much shorter. Arguments of strict functions are assigned to temporaries, so
that each is evaluated once:

    (None if (t1 := row[2]) is None else c_0(t1, 5))

As in PostgreSQL all arguments of a strict call are evaluated even when an early one is NULL, AND
and OR stop at the first operand that decides, and CASE and COALESCE evaluate only what they must.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from belvedere.errors import Unsupported
from belvedere.execution.direct import subqueries
from belvedere.execution.direct.comparison import key_form
from belvedere.execution.direct.source import Source, tuple_source
from belvedere.execution.run import Rows
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.function import Function
from belvedere.plan.functions.integers import SIGNS
from belvedere.types import SqlType

CompilePlan = Callable[[n.Node], Rows]
ColumnText = Callable[[int], str]

# Python forms that are operators of Python: an inline operator is faster than the call.
_INLINE: dict[Any, str] = {
    operator.eq: "({} == {})",
    operator.ne: "({} != {})",
    operator.lt: "({} < {})",
    operator.le: "({} <= {})",
    operator.gt: "({} > {})",
    operator.ge: "({} >= {})",
    operator.add: "({} + {})",
    operator.sub: "({} - {})",
    operator.mul: "({} * {})",
    operator.neg: "(-{})",
}
_ATOMS = (e.Literal, e.Parameter, e.Column, e.OuterColumn)
_DEPTH_MAX = 30
_OPERANDS_MAX = 16


def row_column(index: int) -> str:
    return f"row[{index}]"


class Writer:
    """Writes expressions into one generated function. `column` returns the text of a column of the
    input row, `row` is the text of that row, which sub-queries see as their outer row."""

    def __init__(
        self,
        source: Source,
        compile_plan: CompilePlan,
        column: ColumnText = row_column,
        row: str = "row",
    ) -> None:
        self.source = source
        self.compile_plan = compile_plan
        self.column = column
        self.row = row
        self._depth = 0

    # -- values -------------------------------------------------------------------------------

    def value(self, expression: e.Expression) -> str:
        """Text of the expression's value. An expression nested too deeply for Python's parser
        becomes a separate function."""
        if self._depth == _DEPTH_MAX and not isinstance(expression, _ATOMS):
            return self.apart(expression)
        self._depth += 1
        try:
            return self.text(expression)
        finally:
            self._depth -= 1

    def apart(self, expression: e.Expression) -> str:
        inner = Source()
        function = inner.row_function(Writer(inner, self.compile_plan).value(expression))
        return f"{self.source.bound(function)}({self.row})"

    def text(self, expression: e.Expression) -> str:
        match expression:
            case e.Literal():
                return self.literal(expression)
            case e.Parameter():
                return f"{self.source.parameters()}[{expression.index - 1}]"
            case e.Column():
                return self.column(expression.index)
            case e.OuterColumn():
                return f"{self.source.outer(expression.depth)}[{expression.index}]"
            case e.Call():
                return self.call(expression.function, expression.arguments)
            case e.Cast():
                return self.call(expression.function, (expression.operand,))
            case e.And():
                return self.all_of(expression.operands)
            case e.Or():
                return self.any_of(expression.operands)
            case e.Not():
                held = self.source.temporary()
                text = self.value(expression.operand)
                return f"(None if ({held} := {text}) is None else not {held})"
            case e.Case():
                return self.case(expression)
            case e.Coalesce():
                return self.coalesce(expression)
            case _:
                return self.test(expression)

    def test(self, expression: e.Expression) -> str:
        match expression:
            case e.Test():
                return self.is_truth(expression)
            case e.IsDistinct():
                return self.is_distinct(expression)
            case e.InList():
                return self.in_list(expression)
            case e.Quantified():
                operand, array = self.value(expression.operand), self.value(expression.array)
                every = expression.quantifier is e.Quantifier.ALL
                types = (expression.operand.type, _element_type(expression.array.type))
                test = self.source.constant(
                    subqueries.quantified(python_form(expression.operator, types), every)
                )
                return f"{test}({operand}, {array})"
            case e.Array():
                return "[" + ", ".join(map(self.value, expression.items)) + "]"
            case e.SequenceCall():
                return self.sequence(expression)
            case _:
                return self.subquery(expression)

    def subquery(self, expression: e.Expression) -> str:
        match expression:
            case e.ScalarSubquery() | e.Exists() | e.ArraySubquery():
                form = subqueries.of_plan(expression, self.compile_plan(expression.plan))
                return f"{self.source.constant(form, 'q')}(run, {self.row})"
            case e.QuantifiedSubquery():
                operands = tuple_source(map(self.value, expression.operands))
                sides = zip(expression.operators, expression.operands, expression.plan.fields)
                forms = tuple(
                    python_form(one, (operand.type, field.type)) for one, operand, field in sides
                )
                test = subqueries.quantified_plan(
                    expression, forms, self.compile_plan(expression.plan)
                )
                return f"{self.source.constant(test, 'q')}(run, {self.row}, {operands})"
            case _:
                raise Unsupported("expression is not supported", kind=type(expression).__name__)

    def literal(self, literal: e.Literal) -> str:
        value = literal.value
        if value is None or value is True or value is False:
            return repr(value)
        if type(value) is int:
            return f"({value})" if value < 0 else str(value)
        return self.source.constant(value)

    def call(self, function: Function, arguments: tuple[e.Expression, ...]) -> str:
        form = python_form(function, tuple([argument.type for argument in arguments]))
        if not function.strict:
            return self.plain_call(function, form, [self.value(argument) for argument in arguments])
        tests, given = self.held(arguments)
        text = self.plain_call(function, form, given)
        return f"(None if {tests} else {text})" if tests else text

    def held(self, arguments: tuple[e.Expression, ...]) -> tuple[str, list[str]]:
        """Text that is true when an argument is NULL, and the arguments to use when it is not."""
        tests: list[str] = []
        given: list[str] = []
        eager = False
        for argument in arguments:
            text = self.value(argument)
            if isinstance(argument, e.Literal) and argument.value is not None:
                given.append(text)
                continue
            held = self.source.temporary()
            eager = eager or (bool(tests) and not isinstance(argument, _ATOMS))
            tests.append(f"({held} := {text}) is None")
            given.append(held)
        if eager:
            return " | ".join(f"({test})" for test in tests), given
        return " or ".join(tests), given

    def plain_call(self, function: Function, form: Callable[..., Any], arguments: list[str]) -> str:
        template = _INLINE.get(form)
        if template is not None:
            return template.format(*arguments)
        sign = SIGNS.get(form)
        if sign is not None and all(one.isidentifier() or one.isdigit() for one in arguments):
            left, right = arguments
            held, other = self.source.temporary(), self.source.constant(form, "f")
            inside = f"{sign.low} <= ({held} := {left} {sign.text} {right}) <= {sign.high}"
            return f"({held} if {inside} else {other}({left}, {right}))"
        if function.environment:
            arguments = [self.source.environment(), *arguments]
        return f"{self.source.constant(form, 'f')}({', '.join(arguments)})"

    def all_of(self, operands: tuple[e.Expression, ...]) -> str:
        """False if one is false, else NULL if one is NULL, else true."""
        if len(operands) > _OPERANDS_MAX:
            return self.value(e.And(tuple(e.And(part) for part in _chunks(operands))))
        names = [self.source.temporary() for _ in operands]
        unknown = " or ".join(f"{name} is None" for name in names)
        text = f"(None if {unknown} else True)"
        for name, operand in zip(reversed(names), reversed(operands)):
            text = f"(False if ({name} := {self.value(operand)}) is False else {text})"
        return text

    def any_of(self, operands: tuple[e.Expression, ...]) -> str:
        if len(operands) > _OPERANDS_MAX:
            return self.value(e.Or(tuple(e.Or(part) for part in _chunks(operands))))
        names = [self.source.temporary() for _ in operands]
        unknown = " or ".join(f"{name} is None" for name in names)
        text = f"(None if {unknown} else False)"
        for name, operand in zip(reversed(names), reversed(operands)):
            text = f"(True if ({name} := {self.value(operand)}) is True else {text})"
        return text

    def case(self, case: e.Case) -> str:
        whens = case.whens
        if len(whens) > _OPERANDS_MAX:
            text = self.apart(e.Case(whens[_OPERANDS_MAX:], case.default, case.type))
            whens = whens[:_OPERANDS_MAX]
        else:
            text = self.value(case.default)
        for condition, result in reversed(whens):
            text = f"({self.value(result)} if {self.truth(condition)} else {text})"
        return text

    def coalesce(self, expression: e.Coalesce) -> str:
        *first, last = expression.arguments
        if len(first) > _OPERANDS_MAX:
            text = self.apart(e.Coalesce(expression.arguments[_OPERANDS_MAX:], expression.type))
            first = first[:_OPERANDS_MAX]
        else:
            text = self.value(last)
        for argument in reversed(first):
            held = self.source.temporary()
            text = f"({held} if ({held} := {self.value(argument)}) is not None else {text})"
        return text

    def is_truth(self, test: e.Test) -> str:
        wanted = {"null": "None", "unknown": "None", "true": "True", "false": "False"}
        sign = "is not" if test.negated else "is"
        if isinstance(test.operand, e.Literal):  # Python warns where a number is compared by `is`
            held = self.source.temporary()
            return f"(({held} := {self.value(test.operand)}) {sign} {wanted[test.truth.value]})"
        return f"({self.value(test.operand)} {sign} {wanted[test.truth.value]})"

    def is_distinct(self, test: e.IsDistinct) -> str:
        left, right = self.source.temporary(), self.source.temporary()
        types = (test.left.type, test.right.type)
        equal = self.plain_call(test.equal, python_form(test.equal, types), [left, right])
        same = f"({right} is None if {left} is None else {right} is not None and {equal})"
        sides = f"({left} := {self.value(test.left)}), ({right} := {self.value(test.right)})"
        text = f"({sides}, {same})[2]"
        return f"({text})" if test.negated else f"(not {text})"

    def in_list(self, test: e.InList) -> str:
        operand = self.value(test.operand)
        found = self.literal_set(test)
        if found is not None:
            values, has_null = found
            form = subqueries.in_set(values, has_null, key_form(test.operand.type), test.negated)
            return f"{self.source.constant(form)}({operand})"
        items = tuple_source(map(self.value, test.items))
        types = (test.operand.type, test.items[0].type)
        among = subqueries.in_items(python_form(test.equal, types), test.negated)
        return f"{self.source.constant(among)}({operand}, {items})"

    def literal_set(self, test: e.InList) -> tuple[frozenset[Any], bool] | None:
        """The keys of a list of constants, when its equality is that of keys."""
        kind = test.operand.type.kind
        if not all(isinstance(item, e.Literal) and item.type.kind is kind for item in test.items):
            return None
        given = [item.value for item in test.items if isinstance(item, e.Literal)]
        form = key_form(test.operand.type)
        known = [value for value in given if value is not None]
        keys = known if form is None else [form(value) for value in known]
        return frozenset(keys), len(known) < len(given)

    def sequence(self, call: e.SequenceCall) -> str:
        services = self.source.services()
        match call.verb:
            case "nextval":
                return f"{services}.next_value({call.sequence})"
            case "currval":
                return f"{services}.current_value({call.sequence})"
            case "lastval":
                return f"{services}.last_value()"
            case "setval":
                given = [self.value(argument) for argument in call.arguments]
                called = given[1] if len(given) > 1 else "True"
                return f"{services}.set_value({call.sequence}, {given[0]}, {called})"
            case _:
                raise Unsupported("sequence function is not supported", name=call.verb)

    # -- truth --------------------------------------------------------------------------------

    def truth(self, expression: e.Expression) -> str:
        """Text that is true exactly when the expression is TRUE."""
        match expression:
            case e.And():
                return "(" + " and ".join(map(self.truth, expression.operands)) + ")"
            case e.Or():
                return "(" + " or ".join(map(self.truth, expression.operands)) + ")"
            case e.Call() if expression.function.strict:
                tests, given = self.held(expression.arguments)
                types = tuple([argument.type for argument in expression.arguments])
                form = python_form(expression.function, types)
                text = self.plain_call(expression.function, form, given)
                return f"(not ({tests}) and {text})" if tests else text
            case e.Test() | e.IsDistinct() | e.Exists():
                return self.value(expression)
            case _:
                return f"({self.value(expression)} is True)"


def _element_type(sql_type: SqlType) -> SqlType:
    return sql_type if sql_type.element is None else sql_type.element


def _chunks(operands: tuple[e.Expression, ...]) -> list[tuple[e.Expression, ...]]:
    size = max(_OPERANDS_MAX, -(-len(operands) // _OPERANDS_MAX))
    return [operands[i : i + size] for i in range(0, len(operands), size)]


def python_form(function: Function, types: tuple[SqlType, ...] = ()) -> Callable[..., Any]:
    """The Python form of a call with arguments of these types."""
    form = function.python if function.specialize is None else function.specialize(types)
    if not callable(form):
        raise Unsupported("aggregate function is not allowed here", name=function.name)
    return form
