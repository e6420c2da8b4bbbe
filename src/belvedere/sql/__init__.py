"""Compiles SQL text to a bound, typed, optimized plan: `parse/`, then `bind/`, then `rules/`."""
