"""Trees to typed plans: names, types, casts, and PostgreSQL's rules for all of them."""
