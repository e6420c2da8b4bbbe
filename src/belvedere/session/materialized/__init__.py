"""materialized."""
