"""Frames and client of the socket by which another process reaches an open store.

In reading order; an entry uses only those before it:

    frames   wire format between a client and the owner of an open store, on a Unix socket
    streams  Arrow batches over a connection, as chunks of an IPC stream in bounded data frames
    client   client of the owner: the process that has a store open
"""

SURFACE = (
    "client",
    "frames",
    "streams",
)
"""The modules that other packages may import."""
