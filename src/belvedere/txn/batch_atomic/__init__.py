"""batch_atomic."""
