"""Aggregates and window functions.

In reading order; an entry uses only those before it:

    accumulators  the Python forms of aggregates: their initial states, step and finish functions
    windows       window functions
    aggregates    count, sum, avg, min, max, boolean and bit folds, string_agg, array_agg ..
    statistical   statistical aggregates: correlation and regression, percentiles, mode
"""
