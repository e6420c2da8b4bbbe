"""Test doubles of the stores: they compare, record, fail or lose power on request."""
