"""The optimizer's rules, one per file; `optimize` lists them in their order."""
