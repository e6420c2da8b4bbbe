"""Candidates: views and indexes to be considered, as SQL.

In reading order; an entry uses only those before it:

    definition_text  definitions as SQL text
    candidate        a view, or an index of a table
    view_shape       leaves, conditions and ordered columns of a join view
    query_views      views for one query: joins, filtered joins, groups
    query_answers    whole queries, and their first rows
    path_views       the views that Synergy's mechanism selects
    shared_views     views for several queries
    view_forms       co-located and local forms of the others
    table_indexes    indexes, where nothing else is missing
"""
