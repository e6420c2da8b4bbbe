"""cells."""
