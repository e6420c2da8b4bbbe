"""Stores that help tests: one compares, one records, some fail or lose power on request."""
