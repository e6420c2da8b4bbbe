"""The DuckDB engine: a plan becomes SQL text over columnar copies of tables.

In reading order; an entry uses only those before it:

    columns           the rows of one table in memory, in stored form, with the Arrow columns
                      decoded from them
    python_division   NUMERIC division as a Python function that DuckDB calls where it divides few
                      values
    types             values that cross into DuckDB and back: literals, result columns, exactness
                      of types
    columnar_copy     the columnar copy of one table: its rows at a position, first in stored form
                      with the columns decoded so far (`columns`), later as a table of DuckDB
    engine            the DuckDB instance of a database
    leaves            leaves of DuckDB statements: rows of the store through the same access
                      paths, as Arrow tables
    query             SQL text with the types of its columns, and the parts it is assembled from
    rows              DuckDB's results as Python rows, converted only when rows and not columns
                      are read
    columnar_cache    cache of columnar copies of the tables that large statements read
    numeric_division  NUMERIC division in DuckDB, to PostgreSQL's last digit
    pushdown_forms    forms of calls that DuckDB can push down to its scans, where an argument is
                      a constant
    expressions       expressions to DuckDB's dialect, as sqlglot trees, each with the exact type
                      DuckDB will see
    grouping          aggregates and window functions in DuckDB SQL
    lower             lowering of plans to DuckDB SQL: every node is a SELECT over the SELECTs of
                      its inputs
"""
