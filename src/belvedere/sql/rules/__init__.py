"""The optimizer's rules, one a file; `optimize` has them in their order."""
