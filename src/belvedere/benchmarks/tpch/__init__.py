"""Tables, data and queries of TPC-H.

In reading order; an entry uses only those before it:

    schema    the eight tables of TPC-H and the text of its 22 queries
    words     the vocabulary of TPC-H's generated values
    generate  generator of TPC-H data at any scale, from a seed
"""
