"""Pricing: what a candidate saves queries, costs writes, and stores.

In reading order; an entry uses only those before it:

    host                  the open database as the advisor sees it
    cost_units            microseconds for what plans and maintenance are counted in
    measured_factor       how measured changes compare with estimates
    hypothetical_catalog  a catalog with candidates in it that do not exist
    write_cost            what a view costs the writes of a workload
    index_cost            what an index costs them
    cost_table           the prices of all candidates, each alone
    chosen_set            every query planned with all chosen ones
"""
