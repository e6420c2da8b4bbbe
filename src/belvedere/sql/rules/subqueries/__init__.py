"""Sub-queries and CTEs that become joins.

In reading order; an entry uses only those before it:

    inline_ctes        inlines CTEs that are read once, and removes those that are never read,
                       unless they write
    scalar_aggregates  A correlated scalar aggregate as a left join with the grouped aggregate
    decorrelate        decorrelation: sub-queries in WHERE become joins
"""
