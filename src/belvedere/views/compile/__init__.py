"""A definition to what maintains it: state, layout, required indexes, auxiliary views.

In reading order; an entry uses only those before it:

    auxiliary_views        auxiliary views: state that is stored only to maintain other views
    colocated_layout       the co-located layout of equijoins: rows of the joined tables under one
                           key, joined on read
    partitioned_layout     the partitioned layout of views (`placement = 'local'`): one entry for
                           each partition of the base table, combined on read
    auxiliary_containment  containment of auxiliary views: whether one stores all that another one
                           would
    compile_view           the compiler of view definitions: a bound plan to how it is maintained
                           and how it is read
    defined_view           A new view: what is asked for, and what its definition turned out to be
    required_indexes       the indexes that the maintenance of a view would use if they existed
"""
