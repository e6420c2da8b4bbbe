"""Values of the SQL types: how PostgreSQL reads, prints, rounds and orders them.

Plain functions over the Python values that `belvedere.types` lists; nothing here knows of plans.
"""
