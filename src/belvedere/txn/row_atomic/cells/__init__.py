"""How rows of tables and of the protocol are laid out in cells.

In reading order; an entry uses only those before it:

    layout          the rows of the protocol and their cells
    table_cells     table rows as cells, one a column, readable by other users of the store
    table_filters   conditions on columns as filters of cells
    placement       in which row of the store the row of a table is
    data_cells      data rows as cells: encoding of writes, and reads as of a position
    cell_columns    cells of many rows as Arrow columns
    packed_columns  the same for rows that came packed
    narrow_reader   a reader for the scans of one request: the cells and rows it asks for
"""
