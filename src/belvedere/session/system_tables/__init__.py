"""Read-only system tables: pg_catalog, information_schema and the schema `belvedere`.

In reading order; an entry uses only those before it:

    pg_catalog/       PostgreSQL's system catalogs
    activity_rows     pg_stat_activity, pg_locks and counts: what happens now
    information_rows  columns, constraints and rights of information_schema
    views_table       the system table `belvedere.views`: position, lag, size and cost of each view
    tables            information_schema, and Belvedere's own tables in the schema `belvedere`
"""
