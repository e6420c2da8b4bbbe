"""PostgreSQL's regular expressions: linear in the text, or interruptible, or refused.

In reading order; an entry uses only those before it:

    tree           a pattern as a tree
    parse          PostgreSQL's syntax to a tree (C locale: classes are ASCII)
    render         a tree as the text of a pattern for `re`, or for RE2
    work           an upper bound of the steps that backtracking takes
    position_sets  matching by sets of positions, in Python: slow, but never for ever
    match          which of the three engines matches a text
"""
