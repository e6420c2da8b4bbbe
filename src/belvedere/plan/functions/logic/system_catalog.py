"""Functions that read the system catalogs: definitions, names, sizes, privileges, settings.

Only a session knows the answers, so their Python form asks it (`Environment.ask_catalog`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belvedere.plan.functions.core.function import (
    Environment,
    Function,
    FunctionKind,
    Volatility,
    scalar,
)

EXTENSION_COLUMNS = ("name", "default_version", "comment")
_ROLES = ("", "text,", "oid,")
_PRIVILEGES = (
    "database",
    "foreign_data_wrapper",
    "function",
    "language",
    "schema",
    "sequence",
    "server",
    "table",
    "any_column",
    "tablespace",
    "type",
)


def _list_privilege_signatures() -> list[str]:
    """has_table_privilege(role, table, privilege) and its relatives: each may be name or OID."""
    found = [
        f"has_{what}_privilege({role}{thing},text) bool"
        for what in _PRIVILEGES
        for role in _ROLES
        for thing in ("text", "oid")
    ]
    found += [
        f"has_column_privilege({role}{thing},{column},text) bool"
        for role in _ROLES
        for thing in ("text", "oid")
        for column in ("text", "int2")
    ]
    return found + [
        f"pg_has_role({role}{other},text) bool" for role in _ROLES for other in ("text", "oid")
    ]


_VISIBLE = (
    "collation",
    "conversion",
    "function",
    "opclass",
    "operator",
    "opfamily",
    "statistics_obj",
    "table",
    "ts_config",
    "ts_dict",
    "ts_parser",
    "ts_template",
    "type",
)

_STABLE = f"""
col_description(oid,int4) text
current_schemas(bool) text[]
current_setting(text) text
current_setting(text,bool) text
getdatabaseencoding() text
obj_description(oid) text
obj_description(oid,text) text
pg_backend_pid() int4
pg_char_to_encoding(text) int4
pg_client_encoding() text
pg_encoding_to_char(int4) text
pg_get_constraintdef(oid) text
pg_get_constraintdef(oid,bool) text
pg_get_expr(text,oid) text
pg_get_expr(text,oid,bool) text
pg_get_function_arg_default(oid,int4) text
pg_get_function_arguments(oid) text
pg_get_function_identity_arguments(oid) text
pg_get_function_result(oid) text
pg_get_function_sqlbody(oid) text
pg_get_functiondef(oid) text
pg_get_indexdef(oid) text
pg_get_indexdef(oid,int4,bool) text
pg_get_partition_constraintdef(oid) text
pg_get_partkeydef(oid) text
pg_get_ruledef(oid) text
pg_get_ruledef(oid,bool) text
pg_get_serial_sequence(text,text) text
pg_get_statisticsobjdef_columns(oid) text
pg_get_statisticsobjdef(oid) text
pg_get_triggerdef(oid) text
pg_get_triggerdef(oid,bool) text
pg_get_userbyid(oid) text
pg_get_viewdef(oid) text
pg_get_viewdef(oid,bool) text
pg_get_viewdef(oid,int4) text
pg_get_viewdef(text) text
pg_get_viewdef(text,bool) text
pg_is_other_temp_schema(oid) bool
pg_my_temp_schema() oid
pg_relation_is_publishable(regclass) bool
pg_tablespace_location(oid) text
shobj_description(oid,text) text
to_regclass(text) regclass
to_regnamespace(text) regnamespace
to_regtype(text) regtype
{chr(10).join(f"pg_{what}_is_visible(oid) bool" for what in _VISIBLE)}
{chr(10).join(_list_privilege_signatures())}
"""

_VOLATILE = """
pg_advisory_unlock_all() text
pg_database_size(oid) int8
pg_database_size(text) int8
pg_indexes_size(regclass) int8
pg_is_in_recovery() bool
pg_relation_size(regclass) int8
pg_relation_size(regclass,text) int8
pg_table_size(regclass) int8
pg_tablespace_size(oid) int8
pg_tablespace_size(text) int8
pg_total_relation_size(regclass) int8
"""


def _make_question(name: str) -> Callable[..., Any]:
    def ask_session(environment: Environment, *arguments: Any) -> Any:
        assert environment.ask_catalog is not None
        return environment.ask_catalog(name, *arguments)

    return ask_session


def _declare_functions(text: str, **more: Any) -> list[Function]:
    return [
        scalar(line, _make_question(line.partition("(")[0]), environment=True, **more)
        for line in text.strip().splitlines()
    ]


FUNCTIONS: tuple[Function, ...] = (
    *_declare_functions(_STABLE, volatility=Volatility.STABLE),
    *_declare_functions("format_type(oid,int4) text", volatility=Volatility.STABLE, strict=False),
    *_declare_functions(_VOLATILE, volatility=Volatility.VOLATILE),
    *_declare_functions(
        "set_config(text,text,bool) text\npg_notify(text,text) text",
        volatility=Volatility.VOLATILE,
        strict=False,
    ),
    *_declare_functions(
        "pg_partition_ancestors(regclass) regclass",
        volatility=Volatility.VOLATILE,
        kind=FunctionKind.SET,
    ),
    *_declare_functions(
        "pg_available_extensions() record", volatility=Volatility.STABLE, kind=FunctionKind.SET
    ),
)
