"""The only place for time: undo index, past positions by the log, watermarks, floors."""
