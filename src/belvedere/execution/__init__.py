"""A plan to rows: compiled Python closures for few rows, DuckDB for many.

`choose` estimates the work and picks the tier, `hybrid` splits one plan between both, `run` holds
the state of one execution, `memory` its limits, `writes` and `bulk` apply changes of rows.
"""
