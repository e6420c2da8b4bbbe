"""Synergy's mechanism: views from the hierarchy of the schema, chosen by the workload.

The stages of the paper, one file each, in the order in which they run:

    schema_graph       relations, and edges from primary keys to foreign keys
    overlapping_joins  the weight of edges and paths
    schema_dag         step 1: one edge between two relations
    topological_order  step 2: parents before children
    rooted_graphs      step 3: each relation belongs to one root
    rooted_trees       step 4: one path to each relation
    candidate_views    the paths of the trees
    view_selection     the marked edges of a query, and its views
    query_rewrite      a query over the views selected for it
    view_indexes       indexes of the views, for reads and for maintenance
    roots              roots, where nobody names them
    lock_roots         the root lock that the trees give each table
    mechanism          all stages, one after the other
"""
