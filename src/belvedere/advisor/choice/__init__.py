"""Choice: the set of candidates that is worth most.

In reading order; an entry uses only those before it:

    objective     what a set is worth
    choose_views  greedy choice within a budget, improved by exchanges
    exhaustive    the best set by trying all, to judge the other
    dismissals    why candidates were not chosen
"""
