"""How rows of tables and of the protocol are laid out in cells.

In reading order; an entry uses only those before it:

    layout       the rows of the protocol and what is in their cells
    table_cells  table rows as cells, one cell a column, so that other users of the store can read
                 them
    data_cells   data rows as cells: how a write is encoded, and how cells are read as of a
                 position
"""
