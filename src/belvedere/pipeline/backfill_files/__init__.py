"""State as sorted files, which the store ingests.

In reading order; an entry uses only those before it:

    job_directory  job directories of backfills: finished files, from which a new job resumes
    sorted_files   task functions of a backfill that write state as sorted files
"""
