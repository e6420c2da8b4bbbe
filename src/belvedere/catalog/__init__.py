"""What exists: tables, keys, foreign-key graph, indexes, views and their states.

In reading order; an entry uses only those before it:

    view_options       the options of a materialized view (WITH ..), parsed once
    model              the catalog's objects: their in-memory and stored form, one struct a kind
    foreign_options    the options of foreign servers, foreign tables and their columns, checked
    catalog            the catalog at one version: an immutable index over its objects
    definitions        definitions of tables, indexes, sequences and views, before they get ids
    definition_rules   validation of single definitions, and default names of objects
    foreign_key_graph  the foreign-key graph, and the rooted trees it forms
    relation_codecs    key codec, row layout and row checks of a table, index or view, compiled
    describe           relations described for the key-value printer: names, key codec, layout
    edit               catalog edits: DDL changes from definitions to catalog objects with ids
    merge              changes of the catalog that go together with one committed meanwhile
    comments           comments of objects
    rights/            who may do what: privileges of roles on objects, and how they are granted
    table_rewrite      a copy of a table under a new id, to change its key or a column's type
"""

SURFACE = (
    "catalog",
    "comments",
    "definition_rules",
    "definitions",
    "describe",
    "edit",
    "foreign_key_graph",
    "foreign_options",
    "merge",
    "model",
    "relation_codecs",
    "rights.builtin_roles",
    "rights.grant",
    "rights.ownership",
    "rights.privileges",
    "rights.role_rights",
    "table_rewrite",
    "view_options",
)
"""The modules that other packages may import."""
