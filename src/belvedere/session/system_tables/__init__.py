"""The tables that exist only to be read: information_schema and the schema belvedere.

In reading order; an entry uses only those before it:

    views   the system table `belvedere.views`: position, lag, size and cost of each view
    tables  system tables: information_schema, and Belvedere's own under the schema `belvedere`
"""
