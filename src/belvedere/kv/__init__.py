"""Stores: the two contracts a key-value engine can satisfy, the engines, and their test doubles."""
