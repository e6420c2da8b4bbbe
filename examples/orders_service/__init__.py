"""An order service of 14 tables and 7 materialized views, on Belvedere or on PostgreSQL.

In reading order; an entry uses only those before it:

    database   opens either database, and runs a transaction again when it has to
    migrate    applies the files of migrations/, each once
    service    what the application does: orders, payments, shipments, reviews
    workload   seeded customers who use the service, in one thread or in many
    invariants what must be so after any workload, checked by queries over the tables alone

Run it: `python -m orders_service shop.db`, in `examples/`.
"""
