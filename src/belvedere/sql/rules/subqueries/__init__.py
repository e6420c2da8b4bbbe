"""subqueries."""
