"""The experiments of the papers, at a size for two cores.

In reading order; an entry uses only those before it:

    cloudtps       the dashboard of the CloudTPS thesis
    executors      the executor processes of a local Spark session: counting and killing them
    pnuts_queries  queries of the PNUTS paper: index plans, counts by group, partitions, equijoins
    vms            the experiments of VMS (views maintained from the log of HBase)
    pnuts          the experiments of the PNUTS paper on asynchronous views
    vms_spark      the experiments of VMS with one, two and four Spark executors as view managers
"""
