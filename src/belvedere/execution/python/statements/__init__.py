"""Statements that write, and the fast path of statements about one row or a few.

In reading order; an entry uses only those before it:

    on_conflict       arbiters of ON CONFLICT: the primary key and the unique indexes
    dml               INSERT, UPDATE and DELETE: evaluate all rows first, then write
    key_range         one key range of a statement as generated source
    point_statements  fast path of reads of at most one row, by its key
    row_change_source  generated source of the writes of one row
    point_writes      fast path of writes of one row, by its key
    many_rows_insert  INSERT of one row for many rows of parameters at once
    bulk_writes       UPDATE and DELETE of many rows in batches, with their stored forms
    page_reads        fast path of page queries: the first rows of a key range, in key order
    few_rows_writes   fast path of UPDATE and DELETE of a few rows of one key range
"""
