"""The Spark engine: a plan becomes DataFrames.

In reading order; an entry uses only those before it:

    failures          translation of Spark's failures into the engine's errors
    total_order       plans with total orders, so that equal rows always give the same result
    types             carrier types: the Spark type that holds the values of a SQL type, lossless
    native_functions  native forms of functions that Spark evaluates exactly as PostgreSQL does
    expressions       lowering of expressions to Spark SQL text, with their carrier types
    arrow_kernels     compilation of expressions to Arrow kernels, where these are exact
    operators         Python operators in Spark's tasks, where no exact native form exists
    dataframes        DataFrames of carried columns, and exchanges of rows between tasks
    lower             lowering of plans to Spark DataFrames, node by node
"""
