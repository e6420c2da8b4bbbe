"""COPY: files to rows and rows to files.

In reading order; an entry uses only those before it:

    parquet      parquet files for COPY
    text_format  CSV and PostgreSQL's text format: records of a file, with NULL distinct from
                 empty text
    text_arrow   chunks of a text file as Arrow columns, where every value is spelled plainly
    copy         COPY: files to rows and rows to files, as CSV, PostgreSQL's text format, or
                 Parquet
"""
