"""How far a database on HBase scales: the commit protocol's own code on a simulated cluster.

In reading order; an entry uses only those before it:

    service_times  how long operations take, measured on a real HBase
    cluster        region servers with regions, queues and rows that one request at a time changes
    fleet          nodes with client threads, which commit in groups
    spark_model    the deferred maintenance of views by executors of Spark
    suite          the curves, the checks against real processes, the report
"""
