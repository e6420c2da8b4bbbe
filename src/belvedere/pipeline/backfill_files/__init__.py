"""State as sorted files, which the store ingests.

In reading order; an entry uses only those before it:

    job_directory  job directories of backfills: finished files are recorded next to the store's
                   data, so that a job started after a crash resumes from them
    sorted_files   task functions of a backfill that write state as sorted files, which the store
                   ingests unchanged
"""
