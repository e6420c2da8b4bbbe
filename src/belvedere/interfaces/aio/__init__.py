"""The asynchronous door: connections whose calls are awaited.

In reading order; an entry uses only those before it:

    worker      the thread in which the calls of one connection run
    iterators   streams and subscriptions as asynchronous iterators
    cursor      a cursor whose calls are awaited
    connection  a connection whose calls are awaited
"""
