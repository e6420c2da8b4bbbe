"""system_tables."""
