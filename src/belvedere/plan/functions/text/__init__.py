"""Functions of text and bytes.

In reading order; an entry uses only those before it:

    byte_strings   functions of bytes: cutting, digests, hexadecimal and base64; SQL quoting
    regex          regular expressions: the ~ operators, regexp_* functions, SIMILAR TO
    strings        text functions: case, length, cutting, padding, searching, replacing
    concat_format  concat, format and text || any; COALESCE, GREATEST, LEAST, NULLIF, num_nulls
    like           LIKE and ILIKE, with compiled patterns cached
"""
