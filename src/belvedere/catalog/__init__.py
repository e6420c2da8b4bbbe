"""The catalog: schemas, tables, keys, the foreign-key graph, indexes, views and their states.

Reading order: `model` (the stored objects), `catalog` (all objects at one version), `definitions`
and `edit` (changes to them), `relation` (key codecs and row layouts compiled from them).
"""
