"""The advisor: which views are worth having.

In reading order; an entry uses only those before it:

    workload/    statements with how often they run, bound to a catalog
    synergy/     Synergy's mechanism: views from the hierarchy of the schema
    candidates/  views and indexes to be considered, as SQL
    pricing/     what each would save, cost and store
    choice/      the set that is worth most
    forecast     what every statement would take with that set
    checked_choice  that set, checked with plans of all queries
    advise       all of it, one after the other
    review       what the views that exist have saved and cost
    report/      the advice as text, JSON and HTML, with drawings
"""

SURFACE = (
    "advise",
    "pricing.host",
    "report.html_report",
    "report.json_report",
    "report.review_text",
    "report.text_report",
    "review",
    "workload.statements",
)
"""The modules that other packages may import."""
