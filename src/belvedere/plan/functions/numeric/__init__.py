"""Functions of numbers.

In reading order; an entry uses only those before it:

    decimal_math   NUMERIC: square root, exponential, logarithms, powers
    decimals       NUMERIC: arithmetic and rounding
    floats         REAL and DOUBLE PRECISION: arithmetic, roots, logarithms, trigonometry
    format_number  to_char and to_number for numbers, by PostgreSQL's digit patterns
    integers       SMALLINT, INTEGER and BIGINT: arithmetic with range checks, bits, gcd
    size_pretty    pg_size_pretty: bytes in a unit that a person would choose
    random         random numbers and uuids, from the session's generator
"""
