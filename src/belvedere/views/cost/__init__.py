"""Cost of a batch, and the choice of the engine that computes it.

In reading order; an entry uses only those before it:

    maintenance_tier  the maintenance tiers, one of which computes a batch of a deferred view
                      (`views.cost.tier_selector`)
    cost_model        how long maintaining and reading views takes: the one place with seconds in it
    row_counts        estimated row counts of relations, kept up to date without counting each time
    partition_sizes   how many rows the partitions have that changes touch
    measured_costs    measured costs of the maintenance tiers, as factors of their estimates
    batch_estimates   the estimated cost of a batch in each form
    tier_selector     the choice of the tier that computes a batch of a deferred view
    column_batches    batches that are added up by columns, for one view or several together
"""
