"""The commands of `belvedere`.

In reading order; an entry uses only those before it:

    dump_source    what a dump reads: the store itself, or a copy at one position
    dump_comments  comments of objects as statements of a dump
    dump_rights    roles and rights as statements of a dump
    dump_sql       `belvedere dump --sql`: a script that recreates tables, rows, indexes and views
    job            shared parts of pipeline commands: served store, Spark session, progress, table
    advise         `belvedere advise PATH`: which views are worth having
    shell          `belvedere shell PATH`: the SQL shell, or one run of a text or file
    dump           `belvedere dump PATH`: the catalog and all entries of a store as text
    pipeline_jobs  `belvedere pipeline backfill | maintain | verify | explain`: jobs about views
    copy           `belvedere copy`: a database from one store to another, verified
    demo           `belvedere demo`: a shop with an immediate and a deferred view
    entries        the commands `dump`, `backup`, `restore` and `bench`
    node           the command `belvedere node`: a process that tends a database on HBase
    serve          `belvedere serve PATH`: a server for clients of PostgreSQL
    pipeline       `belvedere pipeline`: one command for each job of `belvedere.pipeline`
"""
