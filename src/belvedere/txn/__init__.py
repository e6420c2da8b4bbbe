"""How data changes: locks, change log, commit, recovery, watermarks, and what a reader may see."""
