"""What exists: tables, keys, foreign-key graph, indexes, views and their states.

In reading order; an entry uses only those before it:

    view_options       what WITH (..) says of a materialized view, parsed once
    model              the catalog's objects: their in-memory and stored form, one struct per kind
    catalog            the catalog at one version: an immutable index over its objects
    definitions        definitions of tables, indexes, sequences and views without ids: the input
                       of `catalog.edit`
    definition_rules   validation rules for single definitions, and default names of objects
                       defined without a name
    foreign_key_graph  the foreign-key graph, and the rooted trees it forms
    relation_codecs    compiled relations: the key codec, the row layout and the row checks of a
                       table, index or view
    describe           relation descriptions from the catalog for the key-value printer: names,
                       key codec, layout
    edit               catalog edits: a set of DDL changes that turns definitions into catalog
                       objects with ids
    table_rewrite      table rewrite: a copy of a table under a new id, to change its key or a
                       column's type
"""

SURFACE = (
    "catalog",
    "definition_rules",
    "definitions",
    "describe",
    "edit",
    "foreign_key_graph",
    "model",
    "relation_codecs",
    "table_rewrite",
    "view_options",
)
"""The modules that other packages may import."""
