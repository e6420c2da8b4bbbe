"""Plans as Spark DataFrames: native where Spark answers as PostgreSQL, in Python where not."""
