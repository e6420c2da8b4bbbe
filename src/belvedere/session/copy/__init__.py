"""COPY: files to rows and rows to files.

In reading order; an entry uses only those before it:

    parquet        Parquet files for COPY
    options        the options of COPY, each honoured or refused
    text_format    CSV and PostgreSQL's text format, with NULL distinct from empty text
    text_chunks    chunks of a text file as Arrow columns, where every value is spelled plainly
    binary_format  PostgreSQL's binary format
    copy           COPY in both directions, as CSV, PostgreSQL's text or binary format, or Parquet
    spool          COPY between a client and a table: the data of the client waits in a spool
    arrow_input    insertion of an Arrow table: the rows of COPY, with columns by their names
"""
