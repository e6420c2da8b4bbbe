"""Decimal contexts of the tests, not of the engine."""

from __future__ import annotations

import decimal

EXACT = decimal.Context(prec=150_000, Emax=999_999_999, Emin=-999_999_999)
"""One in which no NUMERIC is rounded."""


def make_callers_context_useless() -> None:
    """The engine reckons in contexts of its own, never in the caller's: with one digit it would
    show, in this thread and in others."""
    decimal.DefaultContext.prec = 1
    decimal.setcontext(decimal.Context(prec=1, traps=[decimal.Inexact, decimal.InvalidOperation]))
