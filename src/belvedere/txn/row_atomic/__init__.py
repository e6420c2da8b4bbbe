"""row_atomic."""
