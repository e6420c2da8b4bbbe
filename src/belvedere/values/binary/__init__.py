"""PostgreSQL's binary form of values.

In reading order; an entry uses only those before it:

    encoders  values to bytes
    decoders  bytes to values, none of which is trusted
"""
