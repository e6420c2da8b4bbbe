"""Statement execution: from SQL text to rows, inside a transaction, for every door.

`session.Session.execute` is the entry. It takes a compiled statement from the plan cache, or
parses, binds and optimizes the text; a data statement then runs in the open transaction or in one
of its own, and every other statement goes to the dispatcher of utility statements and DDL.
"""
