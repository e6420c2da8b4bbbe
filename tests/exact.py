"""A decimal context in which no NUMERIC is rounded: the tests' own, not the engine's."""

from __future__ import annotations

from decimal import Context

EXACT = Context(prec=150_000, Emax=999_999_999, Emin=-999_999_999)
