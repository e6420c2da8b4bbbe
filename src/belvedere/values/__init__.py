"""SQL values in Python: text in and out, ranges, arithmetic that needs its own rules.

In reading order; an entry uses only those before it:

    failures          constructors of the errors that value functions raise, each with
                      PostgreSQL's SQLSTATE
    quoting           names and texts as parts of an SQL statement
    datetimes         DATE, TIME, TIMESTAMP and TIMESTAMPTZ values: formatting, ranges, time zones
    numbers           booleans, integers and binary floats: parsing, formatting, ranges, rounding
                      to 32 bits
    regex             postgreSQL's regular expressions, translated to Python's
    texts             CHAR, VARCHAR, BYTEA, UUID and JSON values: parsing, formatting, lengths
    arrays            parser and formatter of array literals: '{1,NULL,"a b"}'. Arrays have one
                      dimension here
    decimals          NUMERIC values: parsing, formatting, rounding, and the scale rules of
                      division
    intervals         INTERVAL values: parsing (PostgreSQL, SQL and ISO 8601 notations) and
                      formatting
    datetime_text     text to DATE, TIME, TIMESTAMP and TIMESTAMPTZ
    durations         lengths of time as options, settings and commands take them: '250 ms', '1
                      hour', 'PT5M'
    interval_math     INTERVAL arithmetic: each field by itself, fractions cascading down as in
                      PostgreSQL
    second_precision  second precision: rounding of times, timestamps and intervals to fewer
                      digits of a second
"""

SURFACE = (
    "arrays",
    "datetime_text",
    "datetimes",
    "decimals",
    "durations",
    "failures",
    "interval_math",
    "intervals",
    "numbers",
    "quoting",
    "regex",
    "second_precision",
    "texts",
)
"""The modules that other packages may import."""
