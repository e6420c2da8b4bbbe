"""A database on HBase, compared with bare calls of the same gateways.

In reading order; an entry uses only those before it:

    shop           tables and rows of the benchmark, and the processes that write to them
    bare           the same reads and writes without a database: bare calls of one gateway
    reads          reads by key, scans and joins
    writes         transactions: round trips, locks, views, threads and processes
    operation_mix  DQE's mix of reads, updates and scans
    dashboard      the aggregate view of CloudTPS: written by several processes, verified
    suite          all figures: `belvedere bench hbase --database hbase://..`
"""
