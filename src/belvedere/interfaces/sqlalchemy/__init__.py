"""SQLAlchemy without a server: a dialect over `belvedere.connect`, and views as DDL constructs.

In reading order; an entry uses only those before it:

    materialized_views   CREATE, DROP, ALTER and REFRESH MATERIALIZED VIEW, for both doors
    column_types         how values of SQLAlchemy's types go to a statement and come from its rows
    dialect              `belvedere:///shop.db`: PostgreSQL's dialect over an embedded connection
"""
