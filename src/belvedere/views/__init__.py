"""Materialized views: from a definition to rows that are kept up to date, and how they are read.

In reading order; an entry uses only those before it:

    changefeed/  the changes of a view, stored for its subscribers
    delta/       the algebra of deltas: normal form, delta tree and delta plan of a definition
    compile/     a definition to its maintenance: state, layout, indexes, auxiliary views
    indexes/     indexes as projections of a table or view under another key
    state/       stored state other than rows: watermarks, claims, additions, build progress
    operators/   the operators of a delta tree: each computes the change of its output
    codegen/     generated functions for hot paths of maintenance: one row, groups, sums
    explain/     EXPLAIN MATERIALIZED VIEW: the delta plan, and the cost of a change
    maintain/    changes of the log to writes of view state, for every driver of maintenance
    cost/        cost of a batch, and the choice of the engine that computes it
    registry/    the views of a database, and their part in commits and catalog changes
    deferred/    deferred maintenance: batches, driver, worker thread, lag
    read/        queries over views: over their state, caught up, or by an index that is a view
    rewrite/     query rewriting: views answer queries that do not name them
    backfill/    backfill of views and indexes: plans, steps, drivers
    service      the views of an open database: creating, backfilling and maintaining them
"""

SURFACE = (
    "backfill.backfill_views",
    "backfill.batch_atomic_backfill",
    "backfill.contracts",
    "backfill.row_atomic_backfill",
    "changefeed.entries",
    "changefeed.related_entries",
    "changefeed.row_atomic",
    "codegen.row_entries",
    "compile.compile_view",
    "compile.defined_view",
    "compile.required_indexes",
    "cost.cost_model",
    "cost.maintenance_tier",
    "delta.delta_plan",
    "delta.delta_tree",
    "delta.linear_aggregates",
    "delta.linear_core",
    "delta.normalize",
    "delta.sessionless_run",
    "delta.tie_break",
    "explain.cost_estimate",
    "explain.describe_view",
    "indexes.entries",
    "indexes.participants",
    "indexes.unique_view_index",
    "maintain.log_window",
    "maintain.maintainer",
    "operators.apply",
    "operators.operator",
    "operators.recompute",
    "read.expand_to_state",
    "read.expand_views",
    "read.reading_errors",
    "read.rewrite_rules",
    "read.rewrite_to_index",
    "registry.created_objects",
    "registry.transitions",
    "registry.view_registry",
    "rewrite.explain",
    "rewrite.planner",
    "service",
    "state.additions",
    "state.build_state",
    "state.claims",
    "state.watermarks",
)
"""The modules that other packages may import."""
