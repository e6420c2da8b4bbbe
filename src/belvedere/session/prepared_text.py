"""A statement that a client prepares, describes and runs again and again: the extended protocol's.

The types of parameters are those that the client declares, and for the others those that the
statement determines. A plan follows the catalog; one whose result would have other columns than
the client was told is refused (0A000), as in PostgreSQL.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from belvedere.errors import Error, InvalidInput
from belvedere.plan.fields import ColumnOrigins, Field, Fields
from belvedere.session.context.result import Result
from belvedere.session.dispatch import SETTING_FIELDS
from belvedere.session.explain.statement import PLAN
from belvedere.session.materialized.verify import VERIFY_FIELDS
from belvedere.session.session import Session
from belvedere.session.statement import bind, cached_plans, fast_path
from belvedere.session.statement.compiled_statement import CompiledStatement
from belvedere.session.statement.parameters import ParameterTypesDiffer
from belvedere.session.statement.python_types import Signature
from belvedere.sql import statements as s
from belvedere.sql.definitions import MaintainView
from belvedere.types import TEXT, SqlType


class PreparedText:
    """`fields` is None for a statement that returns no rows, `entry` for one without a plan."""

    __slots__ = ("entry", "fields", "origins", "parameters", "text", "types", "variant")

    def __init__(self, text: str, types: Signature) -> None:
        self.text = text
        self.types = types
        self.parameters: tuple[SqlType, ...] = ()
        self.fields: Fields | None = None
        self.origins: ColumnOrigins = ()
        self.entry: CompiledStatement | None = None
        self.variant: cached_plans.Variant | None = None


def prepare_text(session: Session, text: str, types: Signature) -> PreparedText | None:
    """Bind a text of one statement; None when it has none. A text with a plan is not parsed."""
    prepared = PreparedText(text, types if any(types) else ())
    prepared.variant = session.plan_variant
    prepared.entry = _find_usable_plan(session, prepared)
    if prepared.entry is None:
        found = bind.parse_statements(text)
        if not found:
            return None
        if len(found) > 1:
            raise InvalidInput(
                "cannot insert multiple commands into a prepared statement", sqlstate="42601"
            )
        statement = bind.bind_declared_types(session, found[0], types)
        if not isinstance(statement, s.DataPlan):
            prepared.fields = _find_utility_result_fields(session, statement)
            if isinstance(statement, s.DeclareCursor):
                prepared.parameters = statement.statement.parameters
            return prepared
        entry = session.compile_statement(statement, text[found[0].start : found[0].end])
        cached_plans.keep_plan(session, text, prepared.types, entry)
        prepared.entry = entry
    data = prepared.entry.data
    prepared.parameters = data.parameters
    prepared.fields = data.fields if data.returns else None
    prepared.origins = data.origins
    return prepared


def run_prepared_text(session: Session, prepared: PreparedText, values: Sequence[Any]) -> Result:
    """Run a prepared statement; values have its types, or are text."""
    entry = prepared.entry
    if entry is None:
        return session.execute(prepared.text, values)
    if not _is_plan_usable(session, prepared, entry):
        entry = _prepare_again(session, prepared)
    try:
        return fast_path.run_by_fastest_path(session, entry, values)
    except ParameterTypesDiffer:
        session.transactions.fail()
        raise InvalidInput("parameter has the wrong type", sqlstate="42804") from None


def try_run_prepared_point_read(
    session: Session, prepared: PreparedText, values: Sequence[Any]
) -> Result | None:
    """Run a prepared statement that waits for nothing; None: it is another one."""
    entry = prepared.entry
    if entry is None or entry.tier is not session.settings.tier:
        return None
    if prepared.variant is not session.plan_variant and prepared.variant != session.plan_variant:
        return None
    return fast_path.try_run_point_read(session, entry, values)


def _prepare_again(session: Session, prepared: PreparedText) -> CompiledStatement:
    try:
        again = prepare_text(session, prepared.text, prepared.types)
        assert again is not None
        if again.entry is None or _list_field_names_and_types(
            again.fields
        ) != _list_field_names_and_types(prepared.fields):
            raise InvalidInput("cached plan must not change result type", sqlstate="0A000")
    except Error:
        session.transactions.fail()
        raise
    prepared.entry, prepared.variant = again.entry, again.variant
    return again.entry


def _list_field_names_and_types(fields: Fields | None) -> list[tuple[str, SqlType]] | None:
    return None if fields is None else [(field.name, field.type) for field in fields]


def _find_usable_plan(session: Session, prepared: PreparedText) -> CompiledStatement | None:
    found = cached_plans.find_plan(session, prepared.text, prepared.types)
    return found if found is not None and _is_plan_usable(session, prepared, found) else None


def can_skip_parse(session: Session, prepared: PreparedText) -> bool:
    """Whether to parse the text again would give the same."""
    return prepared.entry is not None and _is_plan_usable(session, prepared, prepared.entry)


def _is_plan_usable(session: Session, prepared: PreparedText, entry: CompiledStatement) -> bool:
    variant = session.plan_variant
    return (
        entry.catalog is session.catalog
        and entry.tier is session.settings.tier
        and (prepared.variant is variant or prepared.variant == variant)
    )


def _find_utility_result_fields(session: Session, statement: s.Statement) -> Fields | None:
    """The columns that a utility statement returns."""
    match statement:
        case s.ShowVariable():
            return (
                SETTING_FIELDS
                if statement.name == "all"
                else (Field(statement.name.lower(), TEXT),)
            )
        case s.Explain():
            return PLAN
        case s.FetchCursor() if not statement.moves:
            return session.cursors.require_cursor(statement.name).fields
        case MaintainView() if statement.verb in ("verify", "repair"):
            return VERIFY_FIELDS
        case s.Execute():
            found = session.prepared.get(statement.name)
            bound = None if found is None else bind.resolve_prepared_source(session, found)
            if isinstance(bound, s.DataPlan):
                return bound.fields if bound.returns else None
            return None
        case _:
            return None
