"""Views: a definition to a delta plan to a maintained view. An index is the smallest of them."""
