"""A connection by each door: to a store in this process, and through the socket of its owner."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import belvedere
from belvedere.interfaces.remote import RemoteSession


def connect_remotely(
    directory: Path, *, autocommit: bool = True, read_only: bool = False
) -> belvedere.Connection:
    """A connection as another process would have it, to a store that this one has open."""
    session = RemoteSession(directory, autocommit=autocommit, read_only=read_only)
    return belvedere.Connection(session, lambda: None)


@pytest.fixture(params=["embedded", "remote"])
def con(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[belvedere.Connection]:
    if request.param == "embedded":
        with belvedere.connect(":memory:", autocommit=True) as opened:
            yield opened
        return
    with belvedere.connect(str(tmp_path / "owned.db"), durability="off"):
        with connect_remotely(tmp_path / "owned.db") as opened:
            yield opened
