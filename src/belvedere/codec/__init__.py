"""SQL values to ordered bytes and back; rows; every key family; the readable printer.

In reading order; an entry uses only those before it:

    compile               compilation of generated source text into a function
    keyspace              every key family of a store, listed once
    scalars               conversion of single values to the integers and bytes in keys and rows,
                          and back
    accumulator           the value of linear view state: a payload that is set once, and integers
                          that only ever add up
    encoding_errors       diagnosis of values that could not be encoded
    numeric               NUMERIC as an order-preserving byte string: equal numbers are equal
                          bytes, whatever their scale
    record                the log record: everything one transaction changed, in one value
    row_slots             generated source of one row slot: how each type is stored in a row
    key_parts             generated source of one key column: how each type is encoded as ordered
                          bytes and decoded
    row_shape             offsets of all fields of a row with a given number of slots
                          (`codec.rows` has the format)
    single_change_record  A fast decoder for log records of one change, which most records are
    keys                  compound keys as ordered bytes: order(a, b) = order(encode a, encode b)
    rows                  rows as bytes: fixed offsets, so that one column is read without the
                          others
    arrow/                rows and log records to Arrow and back
    printer               readable text of any key and value of a store
    view_state            linear view state read as rows: the payload's columns by slot, followed
                          by the amounts
"""

SURFACE = (
    "accumulator",
    "arrow.arrow_to_rows",
    "arrow.records_to_arrow",
    "arrow.rows_to_arrow",
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
