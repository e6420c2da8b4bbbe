"""Join order and join methods.

In reading order; an entry uses only those before it:

    choose_joins  join methods: look-up by key, hash, or nested loop
    merge_joins   merge joins, for two large inputs scanned in the order of the join key
    order_joins   join order of three or more inner joins, smallest results first
"""
