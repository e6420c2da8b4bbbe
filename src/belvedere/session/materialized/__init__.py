"""Statements about materialized views: create, replace, index, verify, subscribe, freshness.

In reading order; an entry uses only those before it:

    create            materialized views in a session: binding, creation, options, and plans that
                      read them
    freshness_policy  the freshness policy: how a statement reads deferred views
    index_views       CREATE INDEX .. WITH (maintenance, placement): a table's index that is
                      stored as a view
    subscription      A stream of a view's own changes: `con.subscribe(view, from_position)`
    view_indexes      CREATE [UNIQUE] INDEX .. ON a materialized view
    replace           replacement of a view
    verify            REFRESH, VERIFY and REPAIR of materialized views
"""
