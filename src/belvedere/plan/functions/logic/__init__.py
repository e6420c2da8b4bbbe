"""Booleans, comparison, and session information.

In reading order; an entry uses only those before it:

    booleans      AND, OR, NOT and the IS tests: three-valued logic, so none of them is strict
    comparison    = <> < <= > >= for every type that has an order, and IS [NOT] DISTINCT FROM
    session_info  session information functions: current user, database, schema and version
"""
