"""A real Apache HBase for tests and demos, started from Maven artifacts; nothing to install.

In reading order; an entry uses only those before it:

    pom.xml     what HBase is made of, pinned
    artifacts   its jars: fetched once, kept outside the checkout
    class_archive  classes as the JVM keeps them in memory, for quick starts
    settings    configuration files and JVM flags
    processes   JVMs: started, watched, killed; their logs
    admin       what only HBase's own client can do: splits, moves, flushes, compactions
    single      ZooKeeper, master, region server and gateway in one JVM
    cluster     the same in several JVMs, which can be killed, paused and started again
    demo_writer a process of the demo that writes orders
    demo_spark  the orders of the demo, summed by Spark
    demo        the demo of a cluster: nodes, writers and Spark, and a kill -9 of each kind
    __main__    up, url and down for the Makefile
"""
