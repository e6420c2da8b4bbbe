"""SQL text to bound statements: the parser and the binder, with a session's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Table
from belvedere.errors import InvalidInput
from belvedere.plan import expressions as e
from belvedere.session.statement.parameters import infer_sql_type
from belvedere.sql.bind.expressions.stored_expressions import table_fields
from belvedere.sql.bind.statements.statement import bind_expression_text, bind_statement
from belvedere.sql.parse.script import ParsedStatement, parse_script
from belvedere.sql.statements import DataPlan, Prepare, Statement
from belvedere.types import TEXT, Kind, SqlType

if TYPE_CHECKING:
    from belvedere.session.session import Session

UNTYPED_PARAMETER = "42P18"


def parse_statements(text: str) -> list[ParsedStatement]:
    return parse_script(text)


def bind_inferring_parameter_types(
    session: Session, parsed: ParsedStatement, parameters: Sequence[Any]
) -> tuple[Statement, bool]:
    """The statement for the session's catalog, and whether it is the same for all parameters.

    A parameter whose use does not determine its type, or only that it may be text, has the type of
    the Python value given for it.
    """
    try:
        bound = _bind_statement_tree(session, parsed.tree, ())
    except InvalidInput as error:
        if error.sqlstate != UNTYPED_PARAMETER or not parameters:
            raise
        return _bind_statement_tree(
            session, parsed.tree, [_infer_type_or_none(value) for value in parameters]
        ), False
    if isinstance(bound, DataPlan) and TEXT in bound.parameters:
        return _rebind_with_value_types(session, parsed, parameters, bound)
    return bound, True


def _rebind_with_value_types(
    session: Session, parsed: ParsedStatement, parameters: Sequence[Any], bound: DataPlan
) -> tuple[Statement, bool]:
    """Values that are not text, where text was only a guess, keep their own types."""
    hints = [
        _infer_type_or_none(value) if inferred == TEXT and not isinstance(value, str) else None
        for value, inferred in zip(parameters, bound.parameters)
    ]
    if not any(hints):
        return bound, True
    try:
        return _bind_statement_tree(session, parsed.tree, hints), False
    except InvalidInput:
        return bound, True  # it is text indeed: the value will be converted


def bind_prepared_statement(session: Session, statement: Prepare) -> Statement:
    (parsed,) = parse_statements(statement.source)
    return _bind_statement_tree(session, parsed.tree, statement.types)


def _bind_statement_tree(session: Session, tree: Any, types: Sequence[SqlType | None]) -> Statement:
    return bind_statement(
        tree,
        session.catalog,
        schema=find_current_schema(session),
        virtual=session.virtual.find_table_fields,
        parameter_types=types,
        zone=session.settings.zone,
    )


def _infer_type_or_none(value: Any) -> SqlType | None:
    found = infer_sql_type(value)
    return None if found.kind is Kind.UNKNOWN else found


def find_current_schema(session: Session) -> str:
    """The first schema of the search path that exists."""
    known = {schema.name for schema in session.catalog.schemas}
    for name in session.settings.get("search_path"):
        if name in known:
            return str(name)
    return "public"


def bind_default_expression(session: Session, text: str, sql_type: SqlType) -> e.Expression:
    return bind_expression_text(session.catalog, text, (), sql_type)


def bind_row_expression(catalog: Catalog, table: Table, text: str) -> e.Expression:
    """Bind a stored expression over the table's row in plans."""
    return bind_expression_text(catalog, text, table_fields(table))


def bind_column_value_expression(
    catalog: Catalog, table: Table, text: str, target: SqlType
) -> e.Expression:
    """Bind a stored expression over the table's row, cast to the type of a column."""
    return bind_expression_text(catalog, text, table_fields(table), target)
