"""What the reference pages say of columns of system tables and of fields of `belvedere.Config`.

The pages fail to build, and a test with them, where a column or a field has no note.
"""

from __future__ import annotations

_VIEW_COLUMNS = {
    "schema": "",
    "name": "",
    "state": "building: being filled, not read yet; ready",
    "maintenance": "immediate or deferred",
    "schedule": "of a deferred view: `close` (follows the log as fast as it can), or its `max_lag` "
    "or `refresh_every`",
    "maintenance_group": "deferred views of one group move together",
    "position": "the position of the log that its rows show",
    "backlog": "how many commits it lacks",
    "lag_ms": "age of the oldest commit it lacks",
    "lag_p50_ms": "the same at the end of its batches since the store was opened, median",
    "lag_p99_ms": "99th percentile of that",
    "rows": "rows that a query of it shows",
    "entries": "rows or groups that are stored for it",
    "bytes": "their size in the store",
    "changes": "changes of tables that it has taken since the store was opened",
    "cost_us": "microseconds a change takes; of an immediate view measured when this is read",
    "last_batch": "who worked out the last batch, how many changes it had, and why so",
    "auxiliaries": "indexes and views that exist to maintain it",
    "owner": "what maintains its group, when that is not the worker of the store",
    "last_verify": "the last result of VERIFY since the store was opened",
    "error": "why its maintenance stands still",
    "definition": "its query",
    "kind": "view, or index: of a view, or of a table with options",
}

COLUMN_NOTES: dict[str, dict[str, str]] = {
    "belvedere.views": _VIEW_COLUMNS,
    "belvedere.auxiliary_views": _VIEW_COLUMNS,
    "belvedere.tables": {
        "schema": "",
        "name": "",
        "id": "the number in the keys of its rows, as `belvedere dump` prints them",
        "rows_estimate": "from the optimizer's sample",
        "indexes": "how many it has",
        "partitions": "of `WITH (partitions = n)`",
    },
    "belvedere.statistics": {
        "schema": "",
        "table_name": "",
        "column_name": "",
        "rows_estimate": "of the table",
        "distinct_estimate": "how many different values there are",
        "null_share": "0 to 1",
        "lowest": "of the sample",
        "highest": "of the sample",
        "common": "the most frequent values with their share",
    },
    "belvedere.statements": {
        "text": "the statement, its constants as `$n`",
        "calls": "",
        "errors": "",
        "rows": "rows returned or changed",
        "total_ms": "",
        "mean_ms": "",
        "max_ms": "",
        "tier": "what ran it last: python, duckdb, or the single-row fast path",
    },
    "belvedere.locks": {
        "kind": "root: a row, or the top row of its hierarchy; table: of LOCK TABLE",
        "key": "the key of that row in the store, in hexadecimal",
        "transaction": "who holds the lock or waits for it",
        "mode": "exclusive or share",
        "granted": "false: it waits",
    },
    "belvedere.nodes": {
        "node": "the number of the process",
        "beat": "its heartbeat, a counter",
        "here": "whether it is this process",
        "alive": "whether its heartbeat has moved within the lease",
        "silent_seconds": "how long it has not moved, as this process saw it",
        "oldest_snapshot": "the oldest position that its readers use; older cells may go",
        "lease_seconds": "of the database: when a silent process is taken for dead",
        "grace_seconds": "of the database: how long a request may be on its way",
    },
    "belvedere.node_locks": {
        "kind": "what the lock is about: a root, a unique value, a join key, ..",
        "key": "its key, in hexadecimal",
        "node": "the process that holds it",
        "attempt": "its number of the commit",
        "side": "holders of one side share the lock; 0 shares with nobody",
        "position": "where the commit may stand in the log, once it has taken a position",
    },
    "belvedere.regions": {
        "table_name": "of HBase",
        "start_key": "in hexadecimal; empty: from the beginning",
        "end_key": "in hexadecimal; empty: to the end",
        "server": "the region server that has it",
    },
    "belvedere.housekeeping": {
        "task": "",
        "error": "its last failure; NULL: none",
        "sqlstate": "",
    },
    "belvedere.log": {
        "position": "dense, never reused",
        "committed_us": "when it was committed, microseconds since 1970",
        "catalog_version": "the version of the catalog it was written under",
        "changes": "how many rows it changed",
    },
    "belvedere.settings": {"name": "", "setting": "its value in this session", "description": ""},
}

CONFIG_NOTES: dict[str, str] = {
    "durability": "`full`: an acknowledged commit survives a power cut; `off`: the death of the "
    "process only",
    "lock_wait_ms_max": "how long a statement waits for a lock where `lock_timeout` is 0",
    "section_wait_ms_max": "how long a commit waits for the commits before it",
    "log_retention_records_min": "commits that the log keeps at least; it is trimmed when it has "
    "twice as many",
    "log_retention_records_max": "commits that the log keeps for a consumer that does not move; "
    "one further behind has to begin anew",
    "undo_bytes_in_memory_max": "old versions of rows for open snapshots; more go to a file",
    "statement_retries_max": "how often a statement in a transaction of its own is run again after "
    "a lost race",
    "outcomes_kept": "transactions whose outcome can be asked for",
    "resume_builds": "at opening, resume interrupted fills of views and indexes; False: drop them",
    "columnar_bytes_max": "columnar copies of tables in memory; 0: none",
    "columnar_rows_min": "tables with fewer rows have no columnar copy",
}
