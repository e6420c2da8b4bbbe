"""The commands of `belvedere`.

In reading order; an entry uses only those before it:

    dump_sql       `belvedere dump --sql PATH`: a script that recreates the tables, rows, indexes
                   and views
    job            shared parts of the pipeline commands: a served store, a Spark session,
                   progress, a result table
    shell          `belvedere shell PATH [-c SQL | -f FILE] [--format table|csv|json] [--accept-
                   data-loss]`
    dump           `belvedere dump PATH`: catalog and entries of a store as text, in key order;
                   with `--sql`, as a script (`dump_sql`)
    pipeline_jobs  `belvedere pipeline backfill | maintain | verify | explain`: the jobs about
                   views
    demo           `belvedere demo`: a shop with an immediate and a deferred view, shown in a
                   minute
    entries        the commands `dump`, `backup`, `restore` and `bench`: one call into the engine
                   each
    pipeline       `belvedere pipeline`: jobs on Spark, each a thin wrapper of a `run` in
                   `belvedere.pipeline`
"""
