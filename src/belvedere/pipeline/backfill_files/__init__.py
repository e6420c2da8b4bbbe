"""backfill_files."""
