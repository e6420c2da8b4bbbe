"""Long VALUES lists: of literals, from programs that write their own SQL and from dumps, and of
parameters, from libraries that insert many rows at once.

    INSERT INTO t VALUES (1, 'a'), (2, NULL), ..
    INSERT INTO t VALUES (?, ?), (?, ?), ..

Each row is served by the plan of an INSERT of one row (`literal_plans`), so the list is not parsed
and bound, which takes fifty times longer than storing its rows. The text is cut by its shape, in
which rows that are written alike are equal:

    INSERT INTO t VALUES ❬(1, 'a')❭, ❬(2, NULL)❭     two rows, of the shapes (i, s) and (i, NULL)

What the plan cannot take, or refuses, goes the general way, which says what is wrong and where:
rows with anything but a few forms of literals, columns that mix texts and numbers, RETURNING. Rows
of parameters have nothing else in them, and are all written alike.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from belvedere import interrupts
from belvedere.errors import Error
from belvedere.execution.python.statements.many_rows_insert import NewRows
from belvedere.execution.python.statements.point_statements import FastPathRun
from belvedere.session.context.result import Result
from belvedere.session.statement import bind, cached_plans, many_rows
from belvedere.session.statement.compiled_statement import CompiledStatement
from belvedere.session.statement.literal_parameters import LiteralPlan, LiteralTypesDiffer
from belvedere.session.statement.parameters import ParameterTypesDiffer
from belvedere.sql.parse.lexical.literal_shape import SplitText, split_literals
from belvedere.sql.statements import DataPlan
from belvedere.types import Row
from belvedere.values.texts import require_text

if TYPE_CHECKING:
    from belvedere.session.session import Session

LITERALS_MIN = 100
"""Shorter lists are planned and cached as any text."""
TEXT_CHARACTERS_MAX = 64 * 2**20
ROW_SHAPES_MAX = 20
_INSERT = re.compile(r"\s*insert\s", re.IGNORECASE)
_HEAD = re.compile(r"""[^()\0]*(?:\([^()\0]*\)\s*)?\bvalues\s*(?=\()""", re.IGNORECASE)
_ROW = re.compile(r"\([^()]*\)")
_REST = re.compile(r"\s*,\s*(?=\()|\s*;?\s*$")
_NUMBER = re.compile(r"-?\s*\0[ijn]")
_MARKS = re.compile(r"\(\s*\?(?:\s*,\s*\?)*\s*\)")
BATCH_ROWS = 4096


FindPlan = Callable[["Session", str], LiteralPlan | None]


class ListedRows(NamedTuple):
    """`head` is the text before the first row; `shapes` are those of the rows."""

    head: str
    shapes: list[str]
    literals: list[str]


def split_values(split: SplitText) -> ListedRows | None:
    """None: the text is not an INSERT of a list of rows of literals."""
    shape = split.shape
    found = _HEAD.match(shape)
    if found is None or _INSERT.match(shape) is None or "--" in shape or "/*" in shape:
        return None
    at, shapes = found.end(), list[str]()
    head = found.group()
    while at < len(shape):
        row = _ROW.match(shape, at)
        rest = None if row is None else _REST.match(shape, row.end())
        if row is None or rest is None:
            return None
        shapes.append(row.group())
        at = rest.end()
    alike = set(shapes)
    if len(alike) > ROW_SHAPES_MAX or not _have_alike_columns(alike):
        return None
    return ListedRows(head, shapes, split.literals)


def _have_alike_columns(shapes: set[str]) -> bool:
    """Whether each column is one kind of literal, and NULL: a list that mixes kinds has the type
    that they have together."""
    if len(shapes) == 1:
        return True
    columns: list[set[str]] = []
    for shape in shapes:
        kinds = [_NUMBER.sub("number", part.strip()).lower() for part in shape[1:-1].split(",")]
        columns = columns or [set() for _ in kinds]
        if len(kinds) != len(columns):
            return False
        for column, kind in zip(columns, kinds):
            column.add(kind)
    return all(len(column - {"null"}) <= 1 for column in columns)


def run_values_list(
    session: Session, text: str, split: SplitText | None, find_plan: FindPlan
) -> Result | None:
    """Run a text that is a long list of rows; None: it is another one, or refused."""
    if split is None and len(text) <= TEXT_CHARACTERS_MAX and _INSERT.match(text):
        split = split_literals(text, TEXT_CHARACTERS_MAX)
    if split is None or len(split.literals) < LITERALS_MIN or session.transactions.failed:
        return None
    listed = split_values(split)
    if listed is None or len(listed.shapes) < 2:
        return None
    plans = _find_plans(session, listed, find_plan)
    if plans is None:
        return None
    if not text.isascii():
        require_text(text)
    entry = plans[listed.shapes[0]].entry

    def insert_rows() -> Result | None:
        try:
            return many_rows.insert_listed_rows(
                session, entry, lambda run: _make_rows(run, listed, plans)
            )
        except LiteralTypesDiffer:
            return None

    return session.run_with_timeout(insert_rows)


def _find_plans(
    session: Session, listed: ListedRows, find_plan: FindPlan
) -> dict[str, LiteralPlan] | None:
    """The plan of each shape of a row; None: one has none."""
    plans: dict[str, LiteralPlan] = {}
    at = 0
    for shape in listed.shapes:
        count = shape.count("\0")
        if shape not in plans:
            row = listed.literals[at : at + count]
            plan = find_plan(session, listed.head + _write_row(shape, row)) if row else None
            if plan is None or plan.entry.find_many_rows_insert() is None:
                return None
            plans[shape] = plan
        at += count
    return plans


def _write_row(shape: str, literals: list[str]) -> str:
    each = iter(literals)
    return re.sub("\0[sijn]", lambda _: next(each), shape)


def _make_rows(run: FastPathRun, listed: ListedRows, plans: dict[str, LiteralPlan]) -> NewRows:
    found, at = NewRows([], [], []), 0
    for shape, group in groupby(listed.shapes):
        plan, width, count = plans[shape], shape.count("\0"), len(list(group))
        insert = plan.entry.find_many_rows_insert()
        assert insert is not None
        end = at + width * count
        made = insert.make_rows(run, _read_rows(plan, listed.literals, at, end, width))
        for column, more in zip(found, made, strict=True):
            column += more
        at = end
    return found


def _read_rows(
    plan: LiteralPlan, literals: list[str], at: int, end: int, width: int
) -> Iterator[Row]:
    for number, start in enumerate(range(at, end, width)):
        if number % BATCH_ROWS == 0:
            interrupts.check_statement()
        yield plan.read_values(literals[start : start + width])


# -- parameters ------------------------------------------------------------------------------------


def run_parameter_list(session: Session, text: str, parameters: Sequence[Any]) -> Result | None:
    """Run a text that is a long list of rows of parameters; None: it is another one, or refused."""
    if len(parameters) < LITERALS_MIN or session.transactions.failed:
        return None
    single = _find_single_row_text(text, len(parameters))
    entry = None if single is None else _find_single_row_plan(session, single, parameters)
    insert = None if entry is None else entry.find_many_rows_insert()
    if single is None or entry is None or insert is None:
        return None
    width = len(entry.data.parameters)

    def make_rows(run: FastPathRun) -> NewRows:
        starts = range(0, len(parameters), width)
        return insert.make_rows(run, (entry.convert(parameters[i : i + width]) for i in starts))

    def insert_rows() -> Result | None:
        try:
            return many_rows.insert_listed_rows(session, entry, make_rows)
        except ParameterTypesDiffer:
            return None

    return session.run_with_timeout(insert_rows)


def _find_single_row_text(text: str, count: int) -> str | None:
    """The INSERT of one row, if the text is one of rows of parameters that are `count` together."""
    found = _HEAD.match(text)
    if found is None or _INSERT.match(text) is None:
        return None
    head = found.group()
    row = _MARKS.match(text, found.end())
    if row is None or any(sign in head for sign in ("'", '"', "--", "/*", "?", "$")):
        return None
    separator = _REST.match(text, row.end())
    rows, left = divmod(count, row.group().count("?"))
    if separator is None or left or rows < 2:
        return None
    listed = text[found.end() :].rstrip().removesuffix(";").rstrip()
    whole = separator.group().join([row.group()] * rows)
    return head + row.group() if listed == whole else None


def _find_single_row_plan(
    session: Session, text: str, parameters: Sequence[Any]
) -> CompiledStatement | None:
    """None: it cannot be planned, or its values have to say of which types they are."""
    entry = cached_plans.find_plan(session, text, ())
    if entry is not None and entry.catalog is session.catalog:
        return entry if entry.tier is session.settings.tier else None
    try:
        [parsed] = bind.parse_statements(text)
        row = parameters[: text.count("?")]
        statement, signature = bind.bind_inferring_parameter_types(session, parsed, row)
        if not isinstance(statement, DataPlan) or signature:
            return None
        entry = session.compile_statement(statement, text)
    except Error:
        return None
    cached_plans.keep_plan(session, text, (), entry)
    return entry
