"""Casts between types.

In reading order; an entry uses only those before it:

    conversions  the Python forms of casts between two types, neither of them text
    casts        casts: which exist in which context, and their Python and SQL forms
"""
