"""Plans as compiled Python closures over rows."""
