r"""The SQL shell.

In reading order; an entry uses only those before it:

    connection  protocols of the shell's connection: in this process, or through the owner's
                socket
    progress    A progress bar for long statements: one line of the terminal, overwritten at each
                step
    render      rendering of rows as text: an aligned table, one column per line, CSV or JSON
    statements  splitting of text into statements, and the caret line of an error
    commands    backslash commands of the shell: \d, \dt, \dv, \timing, \x, \i, \copy, \q and \?
    completion  completion in the shell: keywords, tables, columns, functions, backslash commands
    prompt      the line editor: completion, highlighting, history; Enter runs the text once it is
                complete
    shell       the SQL shell: reads statements, runs them and prints their results
"""
