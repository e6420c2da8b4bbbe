r"""The SQL shell.

In reading order; an entry uses only those before it:

    progress    a progress bar for long statements, in one line of the terminal
    render      rendering of rows as text: an aligned table, one column per line, CSV or JSON
    statements  splitting of text into statements, and the caret line of an error
    commands    backslash commands of the shell: \d, \dt, \dv, \timing, \x, \i, \copy, \q and \?
    completion  completion in the shell: keywords, tables, columns, functions, backslash commands
    prompt      the line editor: completion, highlighting, history
    shell       the SQL shell: reads statements, runs them and prints their results
"""
