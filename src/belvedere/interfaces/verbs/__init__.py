"""What another process may request of an open store: one verb a request.

A verb is a function of the peer that asks (`peer.Peer`) and its arguments. It answers with a plain
value, or with a `Stream` of Arrow batches. Each module lists its own in `VERBS`, and `registry`
combines them. Arguments come from an untrusted process: a verb reads each of them through
`peer.Arguments`, which refuses a value of the wrong type.

In reading order; an entry uses only those before it:

    leases      snapshots held for other processes, so that all tasks of a job read one position
    plain_values  lossless conversion of parameters and small results to values of msgpack
    wire        lossless conversion of result rows to Arrow batches and back
    peer        the context of a verb: the served store, the requesting peer, its arguments
    advise      the verb by which another process asks for advice
    read/       verbs that read rows, changes and queries at a held position
    statements  verbs that run SQL text in a session of the peer's own
    sessions    verbs of a connection from another process: one session for each peer
    subscriptions  verbs of a subscription to a view from another process
    streams     verbs of queries whose rows another process fetches as they are computed
    copies      verbs of COPY between another process and a table
    store       verbs about the store itself: position, identity, backup
    maintain/   verbs that maintain, backfill and verify views from another process
    write/      verbs that stage rows and write them in one transaction
    registry    the registry of all verbs, by name
"""
