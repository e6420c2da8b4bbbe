"""Lowering of plans to Spark: native where Spark answers as PostgreSQL does, else in Python."""
