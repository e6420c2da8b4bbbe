"""SQL text to bound statements: the parser and the binder, with a session's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import CatalogColumn, Table
from belvedere.errors import InvalidInput
from belvedere.plan import expressions as e
from belvedere.session.rights.check_rights import require_statement_rights
from belvedere.session.statement.parameters import ParameterTypesDiffer, make_exact_converter
from belvedere.session.statement.python_types import UNTYPED_LIST, Signature, infer_parameter_types
from belvedere.sql import definitions as d
from belvedere.sql.bind.binder import LiteralSource
from belvedere.sql.bind.expressions.stored_expressions import table_fields
from belvedere.sql.bind.required_rights import RequiredRights
from belvedere.sql.bind.statements.statement import bind_expression_text, bind_statement
from belvedere.sql.parse.script import ParsedStatement, parse_script
from belvedere.sql.statements import DataPlan, Explain, Prepare, Statement
from belvedere.types import TEXT, SqlType, array_of
from belvedere.values.failures import name_column_in_errors

if TYPE_CHECKING:
    from belvedere.session.session import Session


def parse_statements(text: str) -> list[ParsedStatement]:
    return parse_script(text)


def bind_inferring_parameter_types(
    session: Session, parsed: ParsedStatement, parameters: Sequence[Any]
) -> tuple[Statement, Signature]:
    """`_bind_by_parameter_types`; what does not bind under the catalog that this process knows may
    do so under a newer one of another process."""
    seen = session.catalog
    try:
        return _bind_by_parameter_types(session, parsed, parameters)
    except InvalidInput:
        if not session.host.row_atomic or session.host.position < 0 or session.catalog is seen:
            raise
    return _bind_by_parameter_types(session, parsed, parameters)


def _bind_by_parameter_types(
    session: Session, parsed: ParsedStatement, parameters: Sequence[Any]
) -> tuple[Statement, Signature]:
    """The statement for the session's catalog, and the types of parameters that it is for: empty
    when the statement itself determines them.

    That is preferred, because then one plan serves text, NULL and values of that type. Where it
    does not determine them, or a value has another type, Python's types decide, as with psycopg.
    """
    signature = infer_parameter_types(parameters)
    if not any(signature):
        return _bind_statement_tree(session, parsed.tree, ()), ()
    try:
        bound = _bind_statement_tree(session, parsed.tree, ())
    except InvalidInput as error:
        texts = [array_of(TEXT) if one == UNTYPED_LIST else one for one in signature]
        try:
            return _bind_statement_tree(session, parsed.tree, texts), signature
        except InvalidInput as second:
            known = any(one not in (None, UNTYPED_LIST) for one in signature)
            raise second if known else error from None
    if _parameters_fit_bound_types(bound, parameters):
        return bound, ()
    typed = [None if one == UNTYPED_LIST else one for one in signature]
    return _bind_statement_tree(session, parsed.tree, typed), signature


def _parameters_fit_bound_types(bound: Statement, parameters: Sequence[Any]) -> bool:
    """Whether the values have the types that the statement determines; others than data
    statements take them as they are."""
    data = bound.statement if isinstance(bound, Explain) else bound
    if not isinstance(data, DataPlan) or len(data.parameters) != len(parameters):
        return True
    try:
        make_exact_converter(data.parameters, data.zone)(parameters)
    except ParameterTypesDiffer:
        return False
    return True


def bind_declared_types(
    session: Session, parsed: ParsedStatement, types: Sequence[SqlType | None]
) -> Statement:
    """The statement with the types that a client declares; None: the statement decides."""
    return _bind_statement_tree(session, parsed.tree, types)


def resolve_prepared_source(session: Session, statement: Prepare) -> Statement:
    (parsed,) = parse_statements(statement.source)
    return _bind_statement_tree(session, parsed.tree, statement.types)


def bind_and_trace_literals(
    session: Session, parsed: ParsedStatement
) -> tuple[Statement, dict[int, LiteralSource]]:
    """The statement, and where the literals of its plan come from, by the id of each."""
    literals: dict[int, LiteralSource] = {}
    return _bind_statement_tree(session, parsed.tree, (), literals), literals


def _bind_statement_tree(
    session: Session,
    tree: Any,
    types: Sequence[SqlType | None],
    literals: dict[int, LiteralSource] | None = None,
) -> Statement:
    """The bound statement, which the session's role may run."""
    catalog = session.catalog
    rights = session.identity.find_rights_unless_superuser(catalog)
    # A plain view is read with its owner's rights, also by those who may do everything.
    needed = RequiredRights() if rights is not None or catalog.access_lists else None
    schema = find_current_schema(session)
    bound = bind_statement(
        tree,
        catalog,
        schema=schema,
        virtual=session.virtual.find_table_fields,
        parameter_types=types,
        zone=session.settings.zone,
        rights=needed,
        literals=literals,
    )
    if needed is not None:
        require_statement_rights(session, rights, schema, tree, bound, needed)
    return bound


def find_current_schema(session: Session) -> str:
    """The first schema of the search path that exists and that the session's role may use."""
    catalog = session.catalog
    known = {schema.name: schema for schema in catalog.schemas}
    rights = session.identity.find_rights_unless_superuser(catalog)
    for name in session.settings.get("search_path"):
        if name == "$user":
            name = session.identity.name_role(catalog, session.identity.role)
        if name in known and (rights is None or rights.has(known[name], "U")):
            return str(name)
    return "public"


def bind_default_expression(
    session: Session, column: CatalogColumn | d.ColumnClause
) -> e.Expression:
    """Bind the default of a column, or NULL, as the column stores it."""
    with name_column_in_errors(column.name):
        return bind_expression_text(session.catalog, column.default or "null", (), column.type)


def bind_row_expression(catalog: Catalog, table: Table, text: str) -> e.Expression:
    """Bind a stored expression over the table's row in plans."""
    return bind_expression_text(catalog, text, table_fields(table))


def bind_column_value_expression(
    catalog: Catalog, table: Table, text: str, target: SqlType
) -> e.Expression:
    """Bind a stored expression over the table's row, cast to the type of a column."""
    return bind_expression_text(catalog, text, table_fields(table), target)
