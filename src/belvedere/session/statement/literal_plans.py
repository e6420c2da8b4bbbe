"""Plans for texts that were never seen, by their shape: `SELECT a FROM t WHERE b = 7` is served by
the plan that was made for `.. b = 6`, with 7 as its parameter.

A shape is learned with its second text, which is planned with its literals and with parameters. The
plan with parameters is kept if it is the same plan, else the shape is never served: what depends on
the values (a partial index, an estimate, a view that answers the query) has a plan for each text,
as before. So does a statement that takes long, beside which planning is nothing.

A literal that the plan cannot take (a text that is no number, an integer too large) is left to the
parser and the binder, which say what is wrong with it and where.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from belvedere.catalog.catalog import Catalog
from belvedere.errors import Error
from belvedere.execution.choose_tier import Tier
from belvedere.plan import nodes as n
from belvedere.plan.transform import walk_plan
from belvedere.session.context.result import Result
from belvedere.session.statement import bind, fast_path, values_lists
from belvedere.session.statement.compiled_statement import CompiledStatement
from belvedere.session.statement.literal_parameters import (
    LiteralPlan,
    LiteralTypesDiffer,
    ParameterizedStatement,
    parameterize_literals,
    replace_parameters_by_literals,
)
from belvedere.sql.parse.lexical.literal_shape import SplitText, split_literals
from belvedere.sql.parse.script import ParsedStatement
from belvedere.sql.statements import DataPlan
from belvedere.types import Row
from belvedere.values.texts import require_text

if TYPE_CHECKING:
    from belvedere.session.session import Session

SLOW_US = 10_000
"""A statement that takes longer is planned for its literals."""
SECOND_TEXT = 2
"""The text of a shape with which it is learned."""
VARIANTS_MAX = 100
"""How many plans a shape has at most, one for each choice of its fixed literals."""


class LiteralValues(tuple[Any, ...]):
    """The values of the literals of a text, as parameters of the plan for its shape."""

    text: str


class LiteralShape:
    """What is known of a shape: seen once, not to be served under a catalog, or its plans."""

    __slots__ = ("fixed", "plans", "refused_under")

    def __init__(self) -> None:
        self.fixed: tuple[int, ...] = ()
        self.plans: dict[tuple[str, ...], LiteralPlan] = {}
        self.refused_under: Catalog | None = None

    def find_plan(self, literals: list[str]) -> LiteralPlan | None:
        return self.plans.get(tuple([literals[i] for i in self.fixed]))

    def keep_plan(self, literals: list[str], fixed: tuple[int, ...], plan: LiteralPlan) -> None:
        if fixed != self.fixed or len(self.plans) >= VARIANTS_MAX:
            self.plans = {}
        self.fixed = fixed
        self.plans[tuple([literals[i] for i in fixed])] = plan

    def stop_serving_under(self, catalog: Catalog) -> None:
        self.refused_under, self.plans = catalog, {}


def _find_shape(session: Session, shape: str) -> LiteralShape | None:
    found: LiteralShape | None = session.shared.shapes.get((session.plan_variant, shape))
    return found


def try_run_by_shape(session: Session, text: str, parameters: Sequence[Any] = ()) -> Result | None:
    """Run a text without parameters, or a list of rows of them, by the plan of its shape; None when
    there is none for it."""
    if parameters:
        return values_lists.run_parameter_list(session, text, parameters)
    split = split_literals(text)
    found = None if split is None else _find_plan_and_values(session, text, split)
    if found is None:
        return values_lists.run_values_list(session, text, split, _find_or_learn_plan)
    shape, entry, values = found
    started = time.perf_counter()
    result = fast_path.run_by_fastest_path(session, entry, values)
    if (time.perf_counter() - started) * 1e6 > SLOW_US:
        _drop_slow_plan(session, shape, entry)
    return result


def find_plan_by_shape(
    session: Session, text: str
) -> tuple[LiteralShape, CompiledStatement, LiteralValues] | None:
    """The shape of a text, its plan, and the values of its literals; None: there is no plan."""
    split = split_literals(text)
    return None if split is None else _find_plan_and_values(session, text, split)


def _find_plan_and_values(
    session: Session, text: str, split: SplitText
) -> tuple[LiteralShape, CompiledStatement, LiteralValues] | None:
    shape = _find_shape(session, split.shape)
    if shape is None:
        return None
    plan = shape.find_plan(split.literals)
    if plan is None or not _is_plan_usable(session, plan.entry):
        return None
    if not text.isascii():
        require_text(text)
    try:
        values = LiteralValues(plan.read_values(split.literals))
    except (Error, LiteralTypesDiffer):
        return None
    values.text = text
    return shape, plan.entry, values


def _find_or_learn_plan(session: Session, text: str) -> LiteralPlan | None:
    """The plan of the shape of a text, which is learned now if it is not known. None: it has none
    that serves all its texts."""
    split = split_literals(text)
    if split is None:
        return None
    for _ in range(SECOND_TEXT + 1):
        shape = _find_shape(session, split.shape)
        plan = None if shape is None else shape.find_plan(split.literals)
        if shape is not None and plan is not None and _is_plan_usable(session, plan.entry):
            return None if shape.fixed else plan
        if shape is not None and shape.refused_under is session.catalog:
            return None
        try:
            [parsed] = bind.parse_statements(text)
            statement, _signature = bind.bind_inferring_parameter_types(session, parsed, ())
            if not isinstance(statement, DataPlan):
                return None
            learn_shape(session, text, parsed, session.compile_statement(statement, text))
        except Error:
            return None
    return None


def _is_plan_usable(session: Session, entry: CompiledStatement) -> bool:
    return entry.catalog is session.catalog and entry.tier is session.settings.tier


def _drop_slow_plan(session: Session, shape: LiteralShape, entry: CompiledStatement) -> None:
    """A plan that became slow because the data has changed is made again, another one is not."""
    if entry.has_stale_estimates(session.host.visibility.published_snapshot.position):
        session.shared.drop_plan_and_samples(entry)
        shape.plans = {}
    elif not entry.data.changes and not entry.is_point_read:  # that is slow by chance
        shape.stop_serving_under(entry.catalog)


def learn_shape(
    session: Session, text: str, parsed: ParsedStatement, entry: CompiledStatement
) -> None:
    """Note the shape of a text that was planned; from its second text on, with a plan."""
    split = split_literals(text)
    if split is None or entry.choice.tier is not Tier.DIRECT:
        return
    shape = _find_shape(session, split.shape)
    if shape is None:
        key = (session.plan_variant, split.shape)
        session.shared.shapes.put(key, LiteralShape())
        return
    known = shape.find_plan(split.literals)
    if shape.refused_under is entry.catalog or (
        known is not None and _is_plan_usable(session, known.entry)
    ):
        return
    made = _parameterize_text(session, text, split, parsed)
    try:
        plan = None if made is None else _try_compile_same_plan(session, split, made, entry)
    except LiteralTypesDiffer:
        return  # other literals of the shape may do
    if made is None or plan is None:
        shape.stop_serving_under(entry.catalog)
    else:
        shape.keep_plan(split.literals, made.fixed, plan)


def _parameterize_text(
    session: Session, text: str, split: SplitText, parsed: ParsedStatement
) -> ParameterizedStatement | None:
    data, sources = bind.bind_and_trace_literals(session, parsed)
    if not isinstance(data, DataPlan):
        return None
    return parameterize_literals(text, split, parsed.tree, data, sources)


def _try_compile_same_plan(
    session: Session, split: SplitText, made: ParameterizedStatement, entry: CompiledStatement
) -> LiteralPlan | None:
    """The statement with parameters, if it has the plan that it has with its literals."""
    if _depends_on_literal_values(session, entry):
        return None
    try:
        compiled = session.compile_statement(made.data, entry.record.text)
        plan = LiteralPlan(compiled, made.readers)
        values = plan.read_values(split.literals)
    except Error:  # an argument must be a constant
        return None
    compiled.convert = _pass_values_unconverted
    same = _list_fast_paths(compiled) == _list_fast_paths(entry)
    written = replace_parameters_by_literals(compiled.data.plan, values, made.literal_types)
    return plan if same and written == entry.data.plan else None


def _pass_values_unconverted(values: Sequence[Any]) -> Row:
    return values  # type: ignore[return-value]


def _list_fast_paths(entry: CompiledStatement) -> tuple[Any, ...]:
    """The tier, and which of the fast paths there are."""
    paths = (entry.fast_read, entry.fast_write, entry.single_row_commit)
    return entry.choice.tier, *[one is not None for one in paths]


def _depends_on_literal_values(session: Session, entry: CompiledStatement) -> bool:
    """Whether other literals could have another plan: by a partial index, or a view."""
    catalog = session.catalog
    if entry.rewriting is not None or entry.deferred:
        return True
    if not entry.data.changes and entry.fast_read is None and session.settings.rewrite:
        if any(catalog.dependent_views(one) for one in entry.data.relations):
            return True
    for node in walk_plan(entry.data.plan):
        if isinstance(node, n.Scan) and not (node.access.full_key and node.access.index is None):
            if any(index.where is not None for index in catalog.table_indexes(node.relation)):
                return True
    return False
