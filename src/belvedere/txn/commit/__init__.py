"""The batch-atomic commit: its section, its group sync, and what becomes visible when."""
