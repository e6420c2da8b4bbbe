"""The function registry: the meaning of every operator, function, cast and aggregate.

Each function has a type rule, a Python form and an SQL form (see `core.function`), and is compared
with a real PostgreSQL by generated cases. The binder calls `resolve` and `cast_function`, the
DuckDB lowering calls `build_sql` and `duckdb_udfs`.

In reading order; an entry uses only those before it:

    core/       what a function is, overload resolution, and the forms in other engines
    cast/       casts between types
    datetime/   functions of dates, times and intervals
    numeric/    functions of numbers
    logic/      booleans, comparison, and session information
    aggregate/  aggregates and window functions
    text/       functions of text and bytes
    nested/     functions of arrays and JSON, and functions that return sets
    registry    the registry of all functions and operators, and the resolution of calls
"""

from belvedere.plan.functions.cast.casts import (
    CastContext,
    cast_function,
    is_relabelling,
    text_formatter,
    text_parser,
)
from belvedere.plan.functions.core.function import (
    UDF,
    Accumulator,
    Environment,
    Function,
    FunctionKind,
    PartialAggregate,
    Volatility,
    WindowPartition,
)
from belvedere.plan.functions.core.overloads import (
    casts_implicitly,
    common_type,
    require_common_type,
)
from belvedere.plan.functions.core.sql_form import (
    build_sql,
    duckdb_type,
    exceeds_duckdb_digits,
    sqlstate_of,
)
from belvedere.plan.functions.registry import ResolvedCall, duckdb_udfs, functions_by_name, resolve

__all__ = [
    "UDF",
    "Accumulator",
    "CastContext",
    "Environment",
    "Function",
    "FunctionKind",
    "PartialAggregate",
    "ResolvedCall",
    "Volatility",
    "WindowPartition",
    "build_sql",
    "cast_function",
    "casts_implicitly",
    "common_type",
    "duckdb_type",
    "duckdb_udfs",
    "exceeds_duckdb_digits",
    "functions_by_name",
    "is_relabelling",
    "require_common_type",
    "resolve",
    "sqlstate_of",
    "text_formatter",
    "text_parser",
]
