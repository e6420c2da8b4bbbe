"""A small Django app: the tables of a shop."""
