"""Text to a bound, typed, optimized plan: `parse/`, `bind/`, `rules/`, in this order."""
