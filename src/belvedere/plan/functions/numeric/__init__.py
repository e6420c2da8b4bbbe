"""Functions of numbers.

In reading order; an entry uses only those before it:

    decimal_math   NUMERIC: square root, exponential, logarithms, powers
    decimals       NUMERIC: arithmetic and rounding
    floats         REAL and DOUBLE PRECISION: arithmetic, roots, logarithms, trigonometry
    format_number  to_char and to_number for numbers: the digit patterns 9 0 . , D G FM S MI PL SG
                   PR
    integers       SMALLINT, INTEGER and BIGINT: arithmetic with range checks, bits, gcd
    random         random numbers and uuids, from the session's generator, so that a simulation
                   can own it
"""
