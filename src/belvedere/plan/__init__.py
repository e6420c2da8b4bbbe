"""The one plan language: expressions, functions, relational nodes over weighted rows, the
printer."""
