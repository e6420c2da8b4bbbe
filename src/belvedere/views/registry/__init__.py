"""The views of a database, and their part in commits and catalog changes.

In reading order; an entry uses only those before it:

    maintainer_provider  what maintenance requires of the registry of views
    created_objects      the fill of indexes and views that a transaction creates
    transitions          state transitions of views, in the commit of a catalog change
    view_registry        the registry: compiled definitions, maintainers, participants, plans
    row_atomic_locks     the locks that maintenance of immediate views needs on a row-atomic store
"""
