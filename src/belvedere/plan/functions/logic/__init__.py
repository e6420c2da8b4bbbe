"""Booleans, comparison, session information, and questions to the system catalogs.

In reading order; an entry uses only those before it:

    booleans      AND, OR, NOT and the IS tests: three-valued logic, so none of them is strict
    comparison    = <> < <= > >= for every type that has an order, and IS [NOT] DISTINCT FROM
    keywords      the words of PostgreSQL's grammar
    session_info  session information functions: current user, database, schema and version
    system_catalog  functions that read the system catalogs, which a session answers
"""
