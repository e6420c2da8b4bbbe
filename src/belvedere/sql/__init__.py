"""SQL text to a bound, typed, optimized plan.

In reading order; an entry uses only those before it:

    definitions  DDL statements as data, which the catalog turns into its objects
    statements   bound statements: plans, DDL (`sql.definitions`), utility statements
    parse/       text to a tree, by PostgreSQL's grammar
    bind/        a tree to a plan: names to relations and slots, every cast explicit
    rules/       the optimizer: one ordered tuple of rules (`optimize`), each from plan to plan
"""

SURFACE = (
    "bind.binder",
    "bind.expressions.stored_expressions",
    "bind.required_rights",
    "bind.statements.statement",
    "definitions",
    "parse.lexical.keywords",
    "parse.lexical.lexer",
    "parse.lexical.literal_shape",
    "parse.lexical.render",
    "parse.normalize",
    "parse.script",
    "parse.tree",
    "rules.access.implication",
    "rules.access.key_values",
    "rules.column_summary",
    "rules.context",
    "rules.equality",
    "rules.estimates",
    "rules.fold_constants",
    "rules.optimize",
    "rules.plan_cost",
    "rules.prune_columns",
    "rules.push_predicates",
    "rules.simplify_projects",
    "rules.statistics",
    "rules.subqueries.decorrelate",
    "rules.subqueries.inline_ctes",
    "statements",
)
"""The modules that other packages may import."""
