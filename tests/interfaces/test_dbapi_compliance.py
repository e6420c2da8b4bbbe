"""The public DB-API 2.0 compliance suite.

Overridden, as its own rules ask of a driver: `nextset` and `setoutputsize`, which it leaves to each
driver, and `callproc`, an optional extension that Belvedere does not have.
"""

from __future__ import annotations

import dbapi20

import belvedere


class TestCompliance(dbapi20.DatabaseAPI20Test):  # type: ignore[misc]
    driver = belvedere

    connect_args = (":memory:",)

    def test_nextset(self) -> None:
        """A cursor holds the result of the last statement only, so there is no nextset."""
        with belvedere.connect(":memory:") as con:
            assert not hasattr(con.cursor(), "nextset")

    def test_setoutputsize(self) -> None:
        with belvedere.connect(":memory:") as con:
            con.cursor().setoutputsize(1000)
            con.cursor().setoutputsize(1000, 0)

    def test_callproc(self) -> None:
        with belvedere.connect(":memory:") as con:
            assert not hasattr(con.cursor(), "callproc")
