"""The experiments of the papers, at a size for two cores.

In reading order; an entry uses only those before it:

    cloudtps       the dashboard of the CloudTPS thesis, at a size for two cores
    executors      the executors of a Spark session on this machine, as processes that can be
                   counted and killed
    pnuts_queries  queries of the PNUTS paper: index plans, counts by group, partitions, equijoins
    vms            the experiments of VMS (views maintained from the log of HBase), at a size for
                   two cores
    pnuts          the experiments of the PNUTS paper on asynchronous views, at a size for two
                   cores
    vms_spark      the experiments of VMS with Spark as the view managers, on one, two and four
                   executors
"""
