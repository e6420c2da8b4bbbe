"""Choice of access paths for scans.

In reading order; an entry uses only those before it:

    implication         whether the conditions of a scan imply the WHERE of a partial index
    like_patterns       LIKE patterns with a fixed beginning as ranges of text
    key_values          values as a key column holds them
    access_paths        the access paths of a scan, their residual conditions and costs
    split_disjunctions  a scan by the alternatives of an OR, each by its own key
    choose_access       gives each scan its cheapest access path
    ordered_access      the access path for a sort below a limit
    order_by_key        removes sorts whose order an access path already gives
    limit_state         a limit over a view reads only the first rows of its state
    seek_min_max        reads min and max of a key column from the first or last row of a key
"""
