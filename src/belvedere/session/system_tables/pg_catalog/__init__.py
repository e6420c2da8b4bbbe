"""pg_catalog: PostgreSQL's system catalogs over the catalog, for its clients.

In reading order; an entry uses only those before it:

    oids             the numbers of objects
    columns          the columns of the tables, and rows by column name
    relations        the relations of a catalog, with their columns under numbers
    privileges       access lists as text, has_table_privilege and its relatives
    definitions      objects as SQL text
    type_rows        types, collations, operator classes
    foreign_objects  foreign servers and foreign tables, in information_schema too
    class_rows       relations, columns, defaults, indexes, sequences
    constraint_rows  constraints
    comment_rows     comments
    shared_rows      schemas, the database, roles
    function_rows    functions, aggregates, operators, casts
    listing_rows     the views that list objects by name
    sizes            bytes of relations
    functions        the answers of functions that read the catalogs
    tables           what lists the rows of each table
"""
