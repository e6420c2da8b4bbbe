"""One data statement: binding, compilation, parameters, single-row fast path.

In reading order; an entry uses only those before it:

    python_types         the SQL types that Python values have by themselves
    parameters           conversion of Python parameters to SQL values
    bind                 SQL text to bound statements, with a session's settings
    immediate_checks     constraints that must hold at the end of every statement
    compiled_statement   a compiled data statement: parameter converter, plan, fast paths, tier
    cached_plans         which plan of the cache serves a text and its parameters
    catalog_expressions  compiled expressions of indexes, checks and defaults, without a session
    transaction_size     how large the changes of a transaction may become
    attempts             how a statement runs in a transaction, and when it runs again
    freshness_reads      fast path of reads at a freshness
    fast_path            the fast path of cached statements about one row or one page of rows
    many_rows            many rows of one INSERT at once
    literal_parameters   parameters for the literals of a bound statement
    values_lists         long VALUES lists by the plan of an INSERT of one row
    literal_plans        plans for texts that were never seen, by their shape
"""
