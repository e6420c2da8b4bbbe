"""The open store as jobs and tasks see it: client, checkpoint, tables, log.

In reading order; an entry uses only those before it:

    client           typed client of a store that another process has open: the verbs of its
                     socket as methods
    spark_session    Spark sessions with the settings that the pipeline's measurements use
    checkpoint       checkpoints: read-only copies of the store at one position, for the tasks of
                     one batch
    checkpoint_scan  full table scans from a checkpoint of the store in the tasks themselves, not
                     through its owner
    tables           inputs of jobs: the catalog and base tables of an open store at one position,
                     as frames
    compiled_views   the compiled views of a catalog, cached in each process: the driver and every
                     Python worker
    log_changes      reading a range of the log in tasks: net changes of rows, or the changed rows
                     of a table as a frame
    log_range_state  the state of a store at the two ends of a log range, read in tasks from a
                     checkpoint
"""
