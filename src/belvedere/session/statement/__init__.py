"""statement."""
