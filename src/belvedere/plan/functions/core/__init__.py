"""What a function is, overload resolution, and the forms in other engines.

In reading order; an entry uses only those before it:

    function    one registered overload, and the notation in which family modules declare them
    overloads   overload resolution by PostgreSQL's rules, step by step
    sql_form    the SQL form of a call: templates to sqlglot trees in DuckDB's dialect
    duckdb_udf  Python forms as DuckDB scalar functions
"""
