"""Belvedere as a data source of Spark: read, write, stream.

In reading order; an entry uses only those before it:

    filters  translation of the filters that Spark pushes down into the owner's filters
    rejects  the file of rejected rows: each as it was given, with its SQLSTATE and the reason
    types    mapping of the store's column types to Spark's; types that Spark lacks become strings
    stream   `spark.readStream.format("belvedere")`: the stream reader of the change log
    write    `df.write.format("belvedere")` and `writeStream`: the writers of rows into a table
    source   `spark.read.format("belvedere")`: the data source, and its batch reader
"""
