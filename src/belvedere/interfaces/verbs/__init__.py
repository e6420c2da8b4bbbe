"""The requests that other processes may send to an open store, one module for each kind.

A verb is a function of the peer that asks (`peer.Peer`) and its arguments. It answers with a plain
value, or with a `Stream` of Arrow batches. Each module lists its own in `VERBS`, and `registry`
combines them. Arguments come from an untrusted process: a verb reads each of them through
`peer.Arguments`, which refuses a value of the wrong type.
"""
