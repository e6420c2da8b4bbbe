"""Values of the SQL types: parsing, printing, rounding and ordering as in PostgreSQL.

Plain functions over the Python values that `belvedere.types` lists, independent of plans.
"""
