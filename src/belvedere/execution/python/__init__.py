"""The Python engine: a plan becomes generated functions and closures over rows.

In reading order; an entry uses only those before it:

    expressions/   expressions as Python source text
    context        the context in which operators are compiled, and their row functions
    operators/     relational operators over rows, one kind a module
    statements/    statements that write, and the fast path of statements about one row or one page
    compile        compilation of a plan to a function that returns its rows
    few_rows_read  the fast path of queries over a few rows of one key range
"""
