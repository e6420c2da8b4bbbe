"""The function registry: the meaning of every operator, function, cast and aggregate.

Each has a type rule, a Python form and an SQL form (see `function`), and is compared with a real
PostgreSQL by generated cases. The binder calls `resolve` and `cast_function`, the DuckDB lowering
calls `build_sql` and `duckdb_udfs`.
"""

from belvedere.plan.functions.casts import Context, cast_function, formatter, is_relabelling, parser
from belvedere.plan.functions.function import (
    UDF,
    Accumulator,
    Environment,
    Function,
    FunctionKind,
    Partial,
    Partition,
    Volatility,
)
from belvedere.plan.functions.registry import Resolved, duckdb_udfs, registry, resolve
from belvedere.plan.functions.resolution import casts_implicitly, common_type, require_common_type
from belvedere.plan.functions.sqlform import beyond_duckdb, build_sql, duckdb_type, sqlstate_of

__all__ = [
    "UDF",
    "Accumulator",
    "Context",
    "Environment",
    "Function",
    "FunctionKind",
    "Partial",
    "Partition",
    "Resolved",
    "Volatility",
    "beyond_duckdb",
    "build_sql",
    "cast_function",
    "casts_implicitly",
    "common_type",
    "duckdb_type",
    "duckdb_udfs",
    "formatter",
    "is_relabelling",
    "parser",
    "registry",
    "require_common_type",
    "resolve",
    "sqlstate_of",
]
