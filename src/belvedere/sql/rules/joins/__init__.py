"""Join order and join methods.

In reading order; an entry uses only those before it:

    choose_joins  join methods: look the right rows up by key, or hash them, or loop over them
    merge_joins   merge joins, for two large inputs that are both scanned in the order of the join
                  key
    order_joins   join order: of three and more inner joins, the one that keeps rows few comes
                  first
"""
