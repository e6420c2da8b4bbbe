"""A plan to rows: one plan language, three engines (Python, DuckDB, Spark).

In reading order; an entry uses only those before it:

    memory_limit  limits of a statement in the Python tier: bytes of rows held, rows read
    row_writes    writes of single rows, with the actions of the foreign keys that refer to them
    foreign/      rows of foreign tables: tables of an HBase that others write
    bulk_insert   bulk insert of many new rows of one table, for COPY and large INSERTs
    run           one execution of a plan: reader, parameters, outer rows, cancellation
    python/       the Python engine: a plan becomes generated functions and closures over rows
    duckdb/       the DuckDB engine: a plan becomes SQL text over columnar copies of tables
    spark/        the Spark engine: a plan becomes DataFrames
    split_tiers   split of a plan between the tiers
    adaptive_plan plans whose tier each run chooses, by the rows that it reads
    result_size   results that would outgrow the memory limit, counted before they are sorted
    choose_tier   choice of the tier that runs a statement
"""

SURFACE = (
    "bulk_insert",
    "choose_tier",
    "duckdb.columnar_cache",
    "duckdb.engine",
    "duckdb.leaves",
    "duckdb.rows",
    "foreign.foreign_rows",
    "memory_limit",
    "python.compile",
    "python.context",
    "python.expressions.expression_source",
    "python.expressions.generated_function",
    "python.few_rows_read",
    "python.operators.access",
    "python.operators.foreign_scans",
    "python.statements.dml",
    "python.statements.few_rows_writes",
    "python.statements.many_rows_insert",
    "python.statements.page_reads",
    "python.statements.point_statements",
    "python.statements.point_writes",
    "row_writes",
    "run",
    "spark.dataframes",
    "spark.failures",
    "spark.lower",
    "spark.native_functions",
    "spark.operators",
    "spark.types",
    "split_tiers",
)
"""The modules that other packages may import."""
