"""housekeeping."""
