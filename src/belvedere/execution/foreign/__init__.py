"""Foreign tables: tables of an HBase that others write, read under a declared schema.

In reading order; an entry uses only those before it:

    encodings     values of cells and row keys to SQL values and back
    key_ranges    conditions on the columns of a row key as ranges of row keys
    foreign_rows  the rows of one foreign table: what is asked of HBase, and how answers are decoded
"""
