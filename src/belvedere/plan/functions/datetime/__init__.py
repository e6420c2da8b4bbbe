"""datetime."""
