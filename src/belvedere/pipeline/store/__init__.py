"""The open store as jobs and tasks read it: client, checkpoint, tables, log.

In reading order; an entry uses only those before it:

    verb_hosts       who runs the verbs of a store: its owner, or a node of this process
    client           typed client of a store: its verbs as methods
    spark_session    Spark sessions with the settings that the pipeline's measurements use
    checkpoint       read-only copies of the store at one position, for the tasks of one batch
    store_copy       the store at one position, for tasks: a checkpoint, or a held position
    checkpoint_scan  full table scans by the tasks themselves, from a checkpoint of the store
    tables           the catalog and base tables of an open store at one position, as frames
    compiled_views   compiled views of a catalog, cached in the driver and every Python worker
    log_changes      a range of the log, read in tasks: net changes, or changed rows as a frame
    log_range_state  the state of a store at both ends of a log range, read from a checkpoint
"""
