"""What exists: schemas, tables, keys, the foreign-key graph, indexes, views and their states."""
