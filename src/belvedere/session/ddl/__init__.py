"""DDL: definition statements as changes of the catalog.

In reading order; an entry uses only those before it:

    column_dependencies  checks, generated columns and index parts that name a column
    existing_rows        existing rows in DDL: defaults; NOT NULL, CHECK and foreign-key checks
    plain_views          CREATE VIEW, and plain views as dependents of what they name
    foreign_tables       CREATE and DROP of foreign servers and foreign tables
    rename_in_views      rewriting of view definitions after a renamed table or column
    grants               GRANT, REVOKE and default privileges as changes of access lists
    owners               owners of objects: OWNER TO, REASSIGN OWNED, DROP OWNED
    roles                CREATE, ALTER and DROP ROLE, and membership
    rights_changes       statements about roles, owners and grants
    schemas              CREATE, ALTER and DROP SCHEMA, and SET SCHEMA of a relation
    comments             COMMENT ON
    sequences            CREATE and ALTER SEQUENCE, and the sequences of identity columns
    alter                ALTER: each action as a change of the catalog
    rebuild_views        materialized views over a table that ALTER TABLE writes again
    alter_rewrite        ALTER TABLE that writes every row: column type, key, computed columns
    ddl_statements       DDL: definition statements as changes of the catalog
"""
