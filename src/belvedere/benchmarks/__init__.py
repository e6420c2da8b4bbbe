"""Measured ratios, each with its peer in the same run; `belvedere bench WORKLOAD`.

In reading order; an entry uses only those before it:

    report/    measurements as tables, JSON and plots, and PostgreSQL as the peer
    tpch/      tables, data and queries of TPC-H
    overhead   fixed overhead of a cached statement, of planning a statement, and of the import
    queries    TPC-H through `con.execute`, compared with DuckDB on its own tables
    tpch_views TPC-H with the views that the advisor chooses
    store      cost of transactions, snapshots, log and recovery, compared with raw rocksdict
    views/     costs and benefits of materialized views
    papers/    the experiments of the papers, at a size for two cores
    pipeline/  the pipeline on Spark
    tpcw/      TPC-W with the views that the advisor chooses, compared with PostgreSQL
    tpcc/      TPC-C through DB-API, compared with sqlite3 and PostgreSQL
    hbase/     a database on HBase, compared with bare calls of its gateways
    scaling/   the commit protocol on a simulated cluster of up to 200 nodes
    statements/  each kind of statement, compared with sqlite3
    bulk/      statements that change many rows, compared with sqlite3, PostgreSQL and DuckDB
    server     `belvedere serve` compared with PostgreSQL, by the same clients
    ycsb       YCSB through `con.execute`, compared with raw rocksdict and with sqlite3
"""

SURFACE = ()
"""The modules that other packages may import."""
