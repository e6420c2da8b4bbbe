"""TPC-H: the schema, a generator of its data, and its 22 queries with the validation parameters."""
