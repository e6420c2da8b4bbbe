"""SQL values to ordered bytes and back; rows; every key family; the readable printer.

In reading order; an entry uses only those before it:

    compile               compilation of generated source text into a function
    keyspace              every key family of a store, listed once
    scalars               single values to the integers and bytes of keys and rows, and back
    accumulator           the value of linear view state: a payload set once, integers summed
    encoding_errors       diagnosis of values that could not be encoded
    numeric               NUMERIC as ordered bytes: equal numbers have equal bytes at any scale
    record                the log record: everything one transaction changed, in one value
    row_slots             generated source of one row slot: how each type is stored in a row
    key_parts             generated source of one key column: encoding and decoding by type
    row_shape             offsets of the fields of a row with a given number of slots
    single_change_record  fast decoder of log records of one change, the most frequent kind
    keys                  compound keys as ordered bytes: order(a, b) = order(encode a, encode b)
    bulk_record           the log record of many changes, encoded by columns
    rows                  rows as bytes: fixed offsets, so that a column is read by itself
    arrow/                rows and log records to Arrow and back
    printer               readable text of any key and value of a store
    view_state            linear view state read as rows: columns of the payload, then the amounts
"""

SURFACE = (
    "accumulator",
    "arrow.arrow_to_rows",
    "arrow.arrow_to_state",
    "arrow.exact_kinds",
    "arrow.state_to_arrow",
    "arrow.records_to_arrow",
    "arrow.rows_to_arrow",
    "bulk_record",
    "compile",
    "keys",
    "keyspace",
    "printer",
    "record",
    "row_slots",
    "rows",
    "scalars",
    "single_change_record",
    "view_state",
)
"""The modules that other packages may import."""
