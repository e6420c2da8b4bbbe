"""The plan language: expressions, functions, relational nodes over weighted rows, the printer.

The binder makes plans, the optimizer rewrites them, every executor and the view compiler read them.
Reading order: `expressions`, `nodes`, `access`, `dml`, `transform`, `functions`.
"""
