"""Join order and join methods.

In reading order; an entry uses only those before it:

    state_lookups  look-ups in the state of a view, as lateral joins
    choose_joins   join methods: look-up by key, hash, or nested loop
    merge_joins    merge joins, for two large inputs scanned in the order of the join key
    semi_joins     semi joins with few rows on the right, as inner joins that start there
    order_joins    join order of three or more inner joins, smallest results first
"""
