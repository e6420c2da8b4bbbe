"""SQL values in Python: text in and out, ranges, arithmetic that needs its own rules.

In reading order; an entry uses only those before it:

    failures          errors that value functions raise, each with PostgreSQL's SQLSTATE
    quoting           names and texts as parts of an SQL statement
    scram             passwords as SCRAM-SHA-256 verifiers, and the proof of who knows one
    datetimes         DATE, TIME, TIMESTAMP and TIMESTAMPTZ values: formatting, ranges, time zones
    numbers           booleans, integers and binary floats: parsing, formatting, ranges, rounding
    regex/            PostgreSQL's regular expressions: linear in the text, or interruptible
    value_size        how large a value may become in a statement
    texts             CHAR, VARCHAR, BYTEA, UUID and JSON values: parsing, formatting, lengths
    arrays            parsing and formatting of array literals of one dimension: '{1,NULL,"a b"}'
    decimals          NUMERIC values: parsing, formatting, rounding, scale of quotients
    exponentials      exponentials and logarithms of NUMERIC values to thousands of digits
    intervals         INTERVAL values: parsing (PostgreSQL, SQL, ISO 8601) and formatting
    datetime_text     text to DATE, TIME, TIMESTAMP and TIMESTAMPTZ
    durations         lengths of time in options, settings and commands: '250 ms', '1 hour'
    interval_math     INTERVAL arithmetic, field by field, as in PostgreSQL
    type_oids         SQL types as the numbers that PostgreSQL gave them
    binary/           PostgreSQL's binary form of values
    second_precision  rounding of times, timestamps and intervals to fewer digits of a second
"""

SURFACE = (
    "arrays",
    "binary.decoders",
    "binary.encoders",
    "datetime_text",
    "datetimes",
    "decimals",
    "durations",
    "exponentials",
    "failures",
    "interval_math",
    "intervals",
    "numbers",
    "quoting",
    "regex.match",
    "scram",
    "second_precision",
    "texts",
    "type_oids",
    "value_size",
)
"""The modules that other packages may import."""
