"""A plan to rows: compiled Python closures for few rows, DuckDB for many."""
