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
from belvedere.execution.python.expressions import subqueries
from belvedere.execution.python.expressions.comparison import key_form
from belvedere.execution.python.expressions.generated_function import (
    GeneratedFunction,
    tuple_source,
)
from belvedere.execution.run import Rows
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Function
from belvedere.plan.functions.numeric.integers import PYTHON_OPERATORS
from belvedere.types import BIGINT, SqlType

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


class ExpressionWriter:
    """Writes expressions into one generated function. `column` returns the text of a column of the
    input row, `row` is the text of that row, which sub-queries see as their outer row."""

    def __init__(
        self,
        source: GeneratedFunction,
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

    def write_value(self, expression: e.Expression) -> str:
        """Text of the expression's value. An expression nested too deeply for Python's parser
        becomes a separate function."""
        if self._depth == _DEPTH_MAX and not isinstance(expression, _ATOMS):
            return self.write_function(expression)
        self._depth += 1
        try:
            return self.write_expression(expression)
        finally:
            self._depth -= 1

    def write_function(self, expression: e.Expression) -> str:
        inner = GeneratedFunction()
        function = inner.build_row_function(
            ExpressionWriter(inner, self.compile_plan).write_value(expression)
        )
        return f"{self.source.bind_to_run(function)}({self.row})"

    def write_expression(self, expression: e.Expression) -> str:
        match expression:
            case e.Literal():
                return self.write_literal(expression)
            case e.Parameter():
                return f"{self.source.use_parameters()}[{expression.index - 1}]"
            case e.Column():
                return self.column(expression.index)
            case e.OuterColumn():
                return f"{self.source.use_outer_row(expression.depth)}[{expression.index}]"
            case e.Call():
                return self.write_call(expression.function, expression.arguments)
            case e.Cast():
                return self.write_call(expression.function, (expression.operand,))
            case e.And():
                return self.write_and(expression.operands)
            case e.Or():
                return self.write_or(expression.operands)
            case e.Not():
                held = self.source.new_temporary()
                text = self.write_value(expression.operand)
                return f"(None if ({held} := {text}) is None else not {held})"
            case e.Case():
                return self.write_case(expression)
            case e.Coalesce():
                return self.write_coalesce(expression)
            case _:
                return self.write_test(expression)

    def write_test(self, expression: e.Expression) -> str:
        match expression:
            case e.Test():
                return self.write_truth_test(expression)
            case e.IsDistinct():
                return self.write_is_distinct(expression)
            case e.InList():
                return self.write_in_list(expression)
            case e.Quantified():
                operand, array = (
                    self.write_value(expression.operand),
                    self.write_value(expression.array),
                )
                every = expression.quantifier is e.Quantifier.ALL
                types = (expression.operand.type, _element_type(expression.array.type))
                test = self.source.add_constant(
                    subqueries.compile_quantified(python_form(expression.operator, types), every)
                )
                return f"{test}({operand}, {array})"
            case e.Array():
                return "[" + ", ".join(map(self.write_value, expression.items)) + "]"
            case e.SequenceCall():
                return self.write_sequence_call(expression)
            case _:
                return self.write_subquery(expression)

    def write_subquery(self, expression: e.Expression) -> str:
        match expression:
            case e.ScalarSubquery() | e.Exists() | e.ArraySubquery():
                plan = expression.plan
                if isinstance(expression, e.Exists):
                    plan = n.Limit(plan, e.Literal(1, BIGINT))  # so that no more is read
                form = subqueries.compile_subquery(expression, self.compile_plan(plan))
                return f"{self.source.add_constant(form, 'q')}(run, {self.row})"
            case e.QuantifiedSubquery():
                operands = tuple_source(map(self.write_value, expression.operands))
                sides = zip(expression.operators, expression.operands, expression.plan.fields)
                forms = tuple(
                    python_form(one, (operand.type, field.type)) for one, operand, field in sides
                )
                test = subqueries.compile_quantified_plan(
                    expression, forms, self.compile_plan(expression.plan)
                )
                return f"{self.source.add_constant(test, 'q')}(run, {self.row}, {operands})"
            case _:
                raise Unsupported("expression is not supported", kind=type(expression).__name__)

    def write_literal(self, literal: e.Literal) -> str:
        value = literal.value
        if value is None or value is True or value is False:
            return repr(value)
        if type(value) is int:
            return f"({value})" if value < 0 else str(value)
        return self.source.add_constant(value)

    def write_call(self, function: Function, arguments: tuple[e.Expression, ...]) -> str:
        form = python_form(function, tuple([argument.type for argument in arguments]))
        if not function.strict:
            return self.write_plain_call(
                function, form, [self.write_value(argument) for argument in arguments]
            )
        tests, given = self.hold_arguments(arguments)
        text = self.write_plain_call(function, form, given)
        return f"(None if {tests} else {text})" if tests else text

    def hold_arguments(self, arguments: tuple[e.Expression, ...]) -> tuple[str, list[str]]:
        """Text that is true when an argument is NULL, and the arguments to use when it is not."""
        tests: list[str] = []
        given: list[str] = []
        eager = False
        for argument in arguments:
            text = self.write_value(argument)
            if isinstance(argument, e.Literal) and argument.value is not None:
                given.append(text)
                continue
            held = self.source.new_temporary()
            eager = eager or (bool(tests) and not isinstance(argument, _ATOMS))
            tests.append(f"({held} := {text}) is None")
            given.append(held)
        if eager:
            return " | ".join(f"({test})" for test in tests), given
        return " or ".join(tests), given

    def write_plain_call(
        self, function: Function, form: Callable[..., Any], arguments: list[str]
    ) -> str:
        template = _INLINE.get(form)
        if template is not None:
            return template.format(*arguments)
        sign = PYTHON_OPERATORS.get(form)
        if sign is not None and all(one.isidentifier() or one.isdigit() for one in arguments):
            left, right = arguments
            held, other = self.source.new_temporary(), self.source.add_constant(form, "f")
            inside = f"{sign.low} <= ({held} := {left} {sign.text} {right}) <= {sign.high}"
            return f"({held} if {inside} else {other}({left}, {right}))"
        if function.environment:
            arguments = [self.source.use_environment(), *arguments]
        return f"{self.source.add_constant(form, 'f')}({', '.join(arguments)})"

    def write_and(self, operands: tuple[e.Expression, ...]) -> str:
        """False if one is false, else NULL if one is NULL, else true."""
        if len(operands) > _OPERANDS_MAX:
            return self.write_value(e.And(tuple(e.And(part) for part in _split_operands(operands))))
        names = [self.source.new_temporary() for _ in operands]
        unknown = " or ".join(f"{name} is None" for name in names)
        text = f"(None if {unknown} else True)"
        for name, operand in zip(reversed(names), reversed(operands)):
            text = f"(False if ({name} := {self.write_value(operand)}) is False else {text})"
        return text

    def write_or(self, operands: tuple[e.Expression, ...]) -> str:
        if len(operands) > _OPERANDS_MAX:
            return self.write_value(e.Or(tuple(e.Or(part) for part in _split_operands(operands))))
        names = [self.source.new_temporary() for _ in operands]
        unknown = " or ".join(f"{name} is None" for name in names)
        text = f"(None if {unknown} else False)"
        for name, operand in zip(reversed(names), reversed(operands)):
            text = f"(True if ({name} := {self.write_value(operand)}) is True else {text})"
        return text

    def write_case(self, case: e.Case) -> str:
        whens = case.whens
        if len(whens) > _OPERANDS_MAX:
            text = self.write_function(e.Case(whens[_OPERANDS_MAX:], case.default, case.type))
            whens = whens[:_OPERANDS_MAX]
        else:
            text = self.write_value(case.default)
        for condition, result in reversed(whens):
            text = f"({self.write_value(result)} if {self.write_truth(condition)} else {text})"
        return text

    def write_coalesce(self, expression: e.Coalesce) -> str:
        *first, last = expression.arguments
        if len(first) > _OPERANDS_MAX:
            text = self.write_function(
                e.Coalesce(expression.arguments[_OPERANDS_MAX:], expression.type)
            )
            first = first[:_OPERANDS_MAX]
        else:
            text = self.write_value(last)
        for argument in reversed(first):
            held = self.source.new_temporary()
            text = f"({held} if ({held} := {self.write_value(argument)}) is not None else {text})"
        return text

    def write_truth_test(self, test: e.Test) -> str:
        wanted = {"null": "None", "unknown": "None", "true": "True", "false": "False"}
        sign = "is not" if test.negated else "is"
        if isinstance(test.operand, e.Literal):  # Python warns where a number is compared by `is`
            held = self.source.new_temporary()
            return (
                f"(({held} := {self.write_value(test.operand)}) {sign} {wanted[test.truth.value]})"
            )
        return f"({self.write_value(test.operand)} {sign} {wanted[test.truth.value]})"

    def write_is_distinct(self, test: e.IsDistinct) -> str:
        left, right = self.source.new_temporary(), self.source.new_temporary()
        types = (test.left.type, test.right.type)
        equal = self.write_plain_call(test.equal, python_form(test.equal, types), [left, right])
        same = f"({right} is None if {left} is None else {right} is not None and {equal})"
        values = self.write_value(test.left), self.write_value(test.right)
        sides = f"({left} := {values[0]}), ({right} := {values[1]})"
        text = f"({sides}, {same})[2]"
        return f"({text})" if test.negated else f"(not {text})"

    def write_in_list(self, test: e.InList) -> str:
        operand = self.write_value(test.operand)
        found = self.literal_set(test)
        if found is not None:
            values, has_null = found
            form = subqueries.compile_in_set(
                values, has_null, key_form(test.operand.type), test.negated
            )
            return f"{self.source.add_constant(form)}({operand})"
        items = tuple_source(map(self.write_value, test.items))
        types = (test.operand.type, test.items[0].type)
        among = subqueries.compile_in_items(python_form(test.equal, types), test.negated)
        return f"{self.source.add_constant(among)}({operand}, {items})"

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

    def write_sequence_call(self, call: e.SequenceCall) -> str:
        services = self.source.use_services()
        match call.verb:
            case "nextval":
                return f"{services}.next_value({call.sequence})"
            case "currval":
                return f"{services}.current_value({call.sequence})"
            case "lastval":
                return f"{services}.last_value()"
            case "setval":
                given = [self.write_value(argument) for argument in call.arguments]
                called = given[1] if len(given) > 1 else "True"
                return f"{services}.set_value({call.sequence}, {given[0]}, {called})"
            case _:
                raise Unsupported("sequence function is not supported", name=call.verb)

    # -- truth --------------------------------------------------------------------------------

    def write_truth(self, expression: e.Expression) -> str:
        """Text that is true exactly when the expression is TRUE."""
        match expression:
            case e.And():
                return "(" + " and ".join(map(self.write_truth, expression.operands)) + ")"
            case e.Or():
                return "(" + " or ".join(map(self.write_truth, expression.operands)) + ")"
            case e.Call() if expression.function.strict:
                tests, given = self.hold_arguments(expression.arguments)
                types = tuple([argument.type for argument in expression.arguments])
                form = python_form(expression.function, types)
                text = self.write_plain_call(expression.function, form, given)
                return f"(not ({tests}) and {text})" if tests else text
            case e.Test() | e.IsDistinct() | e.Exists():
                return self.write_value(expression)
            case _:
                return f"({self.write_value(expression)} is True)"


def _element_type(sql_type: SqlType) -> SqlType:
    return sql_type if sql_type.element is None else sql_type.element


def _split_operands(operands: tuple[e.Expression, ...]) -> list[tuple[e.Expression, ...]]:
    size = max(_OPERANDS_MAX, -(-len(operands) // _OPERANDS_MAX))
    return [operands[i : i + size] for i in range(0, len(operands), size)]


def python_form(function: Function, types: tuple[SqlType, ...] = ()) -> Callable[..., Any]:
    """The Python form of a call with arguments of these types."""
    form = function.python if function.specialize is None else function.specialize(types)
    if not callable(form):
        raise Unsupported("aggregate function is not allowed here", name=function.name)
    return form
