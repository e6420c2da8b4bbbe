"""Kinds of values that go through Arrow unchanged.

A module of its own, which loads no library: it is asked whether columns are worth while before
anything is loaded for them.
"""

from __future__ import annotations

from belvedere.types import Kind

TEXT_KINDS = (Kind.TEXT, Kind.VARCHAR)
EIGHT_BYTE_KINDS = (
    Kind.SMALLINT,
    Kind.INTEGER,
    Kind.BIGINT,
    Kind.DATE,
    Kind.TIMESTAMP,
    Kind.TIMESTAMPTZ,
)
"""Kinds whose keys are the eight bytes of an integer."""

EXACT_KINDS = frozenset((Kind.BOOLEAN, *EIGHT_BYTE_KINDS, *TEXT_KINDS))
"""Kinds whose equal values have one representation, which Arrow carries."""
