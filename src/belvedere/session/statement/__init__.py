"""One data statement: bound, compiled, given parameters, run on the fast path where it can be.

In reading order; an entry uses only those before it:

    parameters           conversion of parameters
    bind                 SQL text to bound statements: the parser and the binder, with a session's
                         settings
    compiled_statement   A compiled data statement: parameter converter, compiled plan, single-row
                         fast paths, tier
    catalog_expressions  compiled SQL expressions of the catalog (of indexes, checks, defaults),
                         for callers without a session: commits and index builds
    fast_path            the single-row fast path: a cached statement about one row or one page of
                         rows, without a Run and, under autocommit, for reads and for commits of
                         one row, without a transaction
"""
