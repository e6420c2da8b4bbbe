"""Functions of text and bytes.

In reading order; an entry uses only those before it:

    byte_strings   functions of bytes: cutting, digests, hexadecimal and base64 encodings; SQL
                   quoting
    regex          regular expressions: the ~ operators, regexp_* functions, substring by pattern,
                   SIMILAR TO
    strings        text functions: case, length, cutting, padding, searching, replacing
    concat_format  concat, concat_ws, format and text || any; COALESCE, GREATEST, LEAST, NULLIF,
                   num_nulls
    like           LIKE and ILIKE. A pattern is compiled once and cached
"""
