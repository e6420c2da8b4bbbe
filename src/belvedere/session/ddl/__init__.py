"""DDL: definition statements as changes of the catalog.

In reading order; an entry uses only those before it:

    column_dependencies  dependents of a column: checks, generated columns and index parts that
                         name it
    existing_rows        existing rows as DDL sees them: default values; checks of NOT NULL, CHECK
                         and foreign keys
    plain_views          plain views as dependents: a catalog change may not remove what their
                         text names
    rename_in_views      rewriting of view definitions after a table or column that they read was
                         renamed
    schemas              CREATE, ALTER and DROP SCHEMA, and SET SCHEMA, which moves a relation to
                         another schema
    sequences            CREATE and ALTER SEQUENCE, and the sequences of identity columns
    alter                ALTER: each action as a change of the catalog; existing rows are checked
                         where needed
    alter_rewrite        ALTER TABLE that writes every row: another column type, another key,
                         computed new columns
    define               DDL: definition statements as changes of the catalog
"""
