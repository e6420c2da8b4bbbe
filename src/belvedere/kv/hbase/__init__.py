"""The row-atomic store on HBase, through Thrift2 gateways.

In reading order; an entry uses only those before it:

    url           URLs of databases on HBase
    thrift_types  the structs and calls of a gateway, from `gateway.thrift`
    page_bytes    pages of scans, read from the bytes of an answer without making objects of them
    connections   one connection to a gateway, with a deadline on every exchange
    pool          the connections of one process to all gateways
    filter_text   filters of scans in HBase's filter language
    requests      operations of the store contract as calls, answers as results
    exchange      calls carried out, one by one or side by side; what failures mean
    tables        the HBase tables of a database: made, checked, chosen by key
    side_by_side  the operations of a `Many` as calls
    store         the CellStore
    table_scan    scans of tables that others write, in any column family
"""
