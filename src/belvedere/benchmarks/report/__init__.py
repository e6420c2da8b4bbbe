"""Measurements as tables, JSON and plots, and PostgreSQL as the peer.

In reading order; an entry uses only those before it:

    plots          plots of a benchmark, saved as PNG and SVG
    postgres_peer  the PostgreSQL server to compare with, from the wheel that the tests use
    measurements   figures as a table and as JSON, with the hardware, the seed and the commit
"""
