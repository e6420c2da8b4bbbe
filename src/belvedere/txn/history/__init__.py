"""Reading earlier states: snapshots through the undo index, past positions through the log."""
