"""HBase does what every row-atomic store must do: the one suite, unchanged."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.kv.hbase.store import HBaseCells
from belvedere.kv.hbase.tables import TableLayout
from belvedere.kv.hbase.url import parse_url
from tests.kv.cells.test_conformance import *  # noqa: F403


@pytest.fixture
def store(url: str) -> Iterator[HBaseCells]:
    opened = HBaseCells(parse_url(url), TableLayout(rows_bytes=(0x10, 0x11)))
    yield opened
    opened.close()
