"""A definition to its maintenance: state, layout, indexes, auxiliary views.

In reading order; an entry uses only those before it:

    auxiliary_views        auxiliary views: state that is stored only to maintain other views
    colocated_layout       the co-located layout of equijoins: joined tables under one key
    partitioned_layout     the partitioned layout (`placement = 'local'`): one entry a partition
    auxiliary_containment  containment: whether one auxiliary view stores all of another
    distinct_rows          whether no two rows of a definition can be equal
    compile_view           the compiler of view definitions: maintenance and reading plans
    defined_view           a new view: the request, and the compiled definition
    required_indexes       the indexes that the maintenance of a view would use
"""
