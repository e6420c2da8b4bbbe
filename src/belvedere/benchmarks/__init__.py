"""Measured ratios, each with its peer in the same run; `belvedere bench WORKLOAD`.

In reading order; an entry uses only those before it:

    report/    measurements as tables, JSON and plots, and PostgreSQL as the peer
    tpch/      tables, data and queries of TPC-H
    overhead   fixed overhead: of a cached statement, of an uncached one that is planned, and of
               the import
    queries    TPC-H through `con.execute`, compared with DuckDB on its own tables, in one run
    store      the store benchmark: the overhead of transactions, snapshots, log and recovery over
               rocksdict
    views/     what views cost and give
    papers/    the experiments of the papers, at a size for two cores
    pipeline/  the pipeline on Spark
    ycsb       YCSB through `con.execute`, compared with the same operations on raw rocksdict and
               on sqlite3
"""

SURFACE = ()
"""The modules that other packages may import."""
