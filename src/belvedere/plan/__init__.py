"""The one plan language: expressions, functions, relational nodes over weighted rows.

In reading order; an entry uses only those before it:

    fields              the name and type of one column of a node's rows
    functions/          the meaning of every operator, function, cast and aggregate
    expressions         typed expressions over rows: the scalar half of the plan language
    access              access paths: how a scan reaches its rows by key, prefix or range
    pattern_prefix      the fixed beginning of a LIKE pattern, as bounds of texts
    dml                 plan nodes that change data
    expression_printer  a printer of expressions as SQL-like text, for EXPLAIN and golden tests
    frames              window frames: which rows around a row a window function sees
    representation      equal values of different representation: 0 and -0, 1.0 and 1.00
    nodes               relational nodes over weighted rows: the other half of the plan language
    row_repeat          rows repeated as often as one of their columns says
    plan_items          walks over the nodes of a plan and the expressions in them
    transform           traversal and rebuilding of plans and expressions
    printer             a printer of plans as indented trees, for EXPLAIN and for golden tests
"""

SURFACE = (
    "access",
    "expression_printer",
    "expressions",
    "fields",
    "frames",
    "functions",
    "functions.aggregate.accumulators",
    "functions.cast.casts",
    "functions.core.duckdb_udf",
    "functions.core.function",
    "functions.core.overloads",
    "functions.core.sql_form",
    "functions.datetime.session_zone",
    "functions.nested.json",
    "functions.nested.json_records",
    "functions.numeric.decimals",
    "functions.numeric.integers",
    "functions.registry",
    "nodes",
    "pattern_prefix",
    "plan_items",
    "printer",
    "representation",
    "row_repeat",
    "transform",
)
"""The modules that other packages may import."""
