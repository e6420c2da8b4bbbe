"""Plans as DuckDB SQL over Arrow batches of the same rows."""
