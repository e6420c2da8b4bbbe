"""SQL values to ordered bytes and back, rows, every key family, and the readable printer.

Reading order: `keyspace` (the key families), `keys` and `key_parts` (ordered keys), `rows`,
`row_slots` and `row_shape` (stored rows), `record` (log records), `accumulator` and `state` (linear
view state), `arrow`, `arrow_load` and `record_arrow` (the same as Arrow columns), `printer`.
"""
