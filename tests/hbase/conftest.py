"""One real HBase for all tests of this part, each test in a namespace of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator

import pytest

from belvedere.kv.hbase.exchange import Exchange
from belvedere.kv.hbase.tables import drop_tables
from belvedere.kv.hbase.url import parse_url
from tools.hbase.__main__ import HOME
from tools.hbase.admin import HBaseAdmin
from tools.hbase.artifacts import MissingTool
from tools.hbase.single import SingleHBase, load_state, start_single

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def hbase(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SingleHBase]:
    """The HBase that `make hbase-up` started, or one for this run."""
    running = load_state(HOME)
    if running is not None:
        yield running
        return
    try:
        started = start_single(tmp_path_factory.mktemp("hbase"), detached=False)
    except MissingTool as missing:
        pytest.skip(str(missing))
    yield started
    started.stop()


@pytest.fixture(scope="session")
def hbase_admin(hbase: SingleHBase) -> Iterator[HBaseAdmin]:
    admin = hbase.open_admin()
    yield admin
    admin.close()


@pytest.fixture
def url(hbase: SingleHBase) -> Iterator[str]:
    """The URL of a database that is not there yet, and is removed after the test."""
    text = f"{hbase.url}/t{os.getpid()}_{next(_numbers)}"
    yield text
    exchange = Exchange(parse_url(text))
    drop_tables(exchange)
    exchange.close()
