"""The DuckDB engine: a plan becomes SQL text over columnar copies of tables.

In reading order; an entry uses only those before it:

    columns           the rows of one table in memory, with the Arrow columns decoded from them
    fetched_columns   the same, each column fetched from a store that sends single columns
    python_division   NUMERIC division as a Python function, for queries that divide few values
    types             values into DuckDB and back: literals, result columns, exactness of types
    columnar_copy     the columnar copy of one table at a position: stored rows, or a DuckDB table
    engine            the DuckDB instance of a database
    leaves            leaves of DuckDB statements: rows of the store as Arrow tables
    query             SQL text with the types of its columns, and the parts it is assembled from
    rows              DuckDB's results as Python rows, converted when rows are read
    columnar_cache    cache of columnar copies of the tables that large statements read
    numeric_division  NUMERIC division in DuckDB, to PostgreSQL's last digit
    pushdown_forms    forms of calls with a constant argument that DuckDB pushes down to its scans
    expressions       expressions as sqlglot trees in DuckDB's dialect, with their exact types
    grouping          aggregates and window functions in DuckDB SQL
    lower             lowering of plans to DuckDB SQL: a node is a SELECT over those of its inputs
"""
