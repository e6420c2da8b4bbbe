"""Statements about materialized views: create, replace, index, verify, subscribe, freshness.

In reading order; an entry uses only those before it:

    create             CREATE MATERIALIZED VIEW: binding, creation, options, and the reading plans
    freshness_policy   the freshness policy: how a statement reads deferred views
    query_rewrite      statements answered from views that they do not name
    table_index_views  CREATE INDEX .. WITH (maintenance, placement): an index stored as a view
    change_stream      what every subscription is: changes iterated or polled
    subscription       a stream of a view's changes: `con.subscribe(view, from_position)`
    table_subscription  a stream of a table's changes, read from the change log
    view_indexes       CREATE [UNIQUE] INDEX .. ON a materialized view
    replace            replacement of a view: CREATE OR REPLACE, and switches of its maintenance
    verify             REFRESH, VERIFY and REPAIR of materialized views
"""
