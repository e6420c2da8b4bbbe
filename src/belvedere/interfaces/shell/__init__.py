r"""The SQL shell.

In reading order; an entry uses only those before it:

    progress    a progress bar for long statements, in one line of the terminal
    render      rendering of rows as text: an aligned table, one column per line, CSV or JSON
    statements  splitting of text into statements, and the caret line of an error
    describe    descriptions of what exists: \d, \dt, \dv, \dm, \di, \ds
    display     how results are shown: the settings of \pset and \x
    commands    backslash commands of the shell: a table of names
    completion  completion in the shell: keywords, tables, columns, functions, backslash commands
    prompt      the line editor: completion, highlighting, history
    shell       the SQL shell: reads statements, runs them and prints their results
"""
