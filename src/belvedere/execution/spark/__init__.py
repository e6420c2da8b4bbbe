"""The Spark engine: a plan becomes DataFrames.

In reading order; an entry uses only those before it:

    failures          translation of Spark's failures into the engine's errors
    total_order       plans whose orders are made total, so that equal rows always give the same
                      result
    types             carrier types: the Spark type that holds the values of each SQL type,
                      lossless both ways
    native_functions  native forms of functions that Spark evaluates exactly as PostgreSQL does
    expressions       lowering of expressions to Spark SQL text, each with the type whose carrier
                      it has
    arrow_kernels     compilation of expressions to Arrow kernels, where these are exact: one call
                      for a batch
    operators         Python operators inside Spark's tasks, for plans and expressions without an
                      exact native form
    dataframes        dataFrames of carried columns, and exchanges that bring rows of several
                      inputs into one task
    lower             lowering of plans to Spark DataFrames: every node over the DataFrames of its
                      inputs
"""
