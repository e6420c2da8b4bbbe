"""The views of a database: the registry, and their part in commits and catalog changes.

In reading order; an entry uses only those before it:

    maintainers       what maintenance needs of whoever knows the views of a database
    transitions       state transitions of views, in the commit of the catalog change that makes
                      them
    view_registry     the view registry: compiled definitions, maintainers, participants and
                      reading plans of views
    row_atomic_locks  immediate views on a row-atomic store: which locks their maintenance needs
"""
