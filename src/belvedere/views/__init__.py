"""Materialized views: from a definition to rows that are kept up to date, and how they are read.

In reading order; an entry uses only those before it:

    changefeed/  the changes of a view itself, kept for subscribers
    delta/       the algebra of deltas: a definition in normal form, its delta tree, its delta
                 plan
    compile/     A definition to what maintains it: state, layout, required indexes, auxiliary
                 views
    indexes/     indexes as projections of a table or view under another key
    state/       what is stored about views beside their rows: watermarks, claims, additions,
                 progress of builds
    operators/   the operators of a delta tree: each gives the weighted rows by which its output
                 changed
    codegen/     generated functions for the hot paths of maintenance: one changed row, groups,
                 sums
    explain/     what EXPLAIN MATERIALIZED VIEW prints: the delta plan, and what a change costs
    maintain/    changes of the log to writes of view state, for every driver of maintenance
    cost/        how long a batch would take, and which engine evaluates it
    registry/    the views of a database: the registry, and their part in commits and catalog
                 changes
    deferred/    deferred maintenance: batches, their driver, its worker thread, and how old views
                 are
    read/        queries over views: over their state, caught up with the log, or rewritten to use
                 one
    build/       the first fill of views and indexes: backfill, its steps, its driver
    service      the views of an open database: creating, filling and driving them
"""

SURFACE = (
    "build.backfill",
    "build.batch_atomic_backfill",
    "build.contracts",
    "build.external_backfill",
    "build.row_atomic_backfill",
    "changefeed.entries",
    "changefeed.related_entries",
    "changefeed.row_atomic",
    "codegen.group_changes",
    "compile.compile_view",
    "compile.defined_view",
    "compile.required_indexes",
    "cost.batch_engine",
    "cost.cost_model",
    "delta.delta_plan",
    "delta.delta_tree",
    "delta.detached_run",
    "delta.linear_aggregates",
    "delta.linear_core",
    "delta.normalize",
    "delta.tie_break",
    "explain.cost_estimate",
    "explain.describe_view",
    "indexes.entries",
    "indexes.participants",
    "indexes.unique",
    "maintain.log_window",
    "maintain.maintainer",
    "operators.apply",
    "operators.operator",
    "operators.recompute",
    "read.expand_views",
    "read.rewrite",
    "read.rewrite_to_index",
    "registry.transitions",
    "registry.view_registry",
    "service",
    "state.additions",
    "state.build_state",
    "state.claims",
    "state.watermarks",
)
"""The modules that other packages may import."""
