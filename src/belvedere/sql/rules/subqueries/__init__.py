"""Sub-queries and CTEs that become joins.

In reading order; an entry uses only those before it:

    inline_ctes        inlines CTEs that are read once, and removes CTEs that are never read
    scalar_aggregates  correlated scalar aggregates as left joins with a grouped aggregate
    decorrelate        decorrelation: sub-queries in WHERE become joins
"""
