"""Verbs on nodes of a row-atomic store: a driver, and guests that read under its positions."""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from belvedere.catalog.model import View
from belvedere.database import SQL_COMPILERS, Database
from belvedere.errors import InvalidInput, Unavailable
from belvedere.interfaces.node_verbs import NodeConnection
from belvedere.interfaces.verbs.leases import LeaseTable
from belvedere.interfaces.verbs.peer import ServedStore
from belvedere.kv.doubles.cells import MemoryCells
from belvedere.remote.frames import Request
from belvedere.session.session import Session
from belvedere.txn.row_atomic.engine import CellStoreSetup
from tests.protocols import UNHURRIED

COUNTED = "SELECT kind, count(*) AS n, sum(price) AS total FROM items GROUP BY kind"


class ServedNode:
    """A process with the verbs, on a store that others use too."""

    def __init__(self, cells: MemoryCells, *, is_guest: bool) -> None:
        self.database = Database.on_cells(
            CellStoreSetup(cells, UNHURRIED, is_guest=is_guest), **SQL_COMPILERS
        )
        shared = self.database.open_shared_state(64)
        self.session = Session(shared, autocommit=True)
        place, jobs = Path("/nowhere"), deque[str]()
        backfill = self.database.views.open_external_backfill(place)
        self._serving = ServedStore(
            self.database, shared, place, LeaseTable(self.database), jobs, backfill
        )

    def ask(self, verb: str, **arguments: Any) -> Any:
        with NodeConnection(self._serving) as connection:
            return connection.ask_owner(Request(verb, arguments))

    def fetch(self, verb: str, **arguments: Any) -> list[tuple[Any, ...]]:
        with NodeConnection(self._serving) as connection:
            _, rows = connection.call_verb(Request(verb, arguments))
            assert rows is not None
            batches = [batch.to_pylist() for batch in rows[1]]
        return [tuple(row.values()) for row in itertools.chain(*batches)]


@pytest.fixture
def cells() -> MemoryCells:
    return MemoryCells()


@pytest.fixture
def driver(cells: MemoryCells) -> Iterator[ServedNode]:
    node = ServedNode(cells, is_guest=False)
    node.session.execute("CREATE TABLE items (id int PRIMARY KEY, kind int, price bigint)")
    node.session.execute("INSERT INTO items VALUES (1, 1, 10), (2, 1, 20), (3, 2, 30)")
    node.session.execute(
        "CREATE MATERIALIZED VIEW per_kind WITH (maintenance = 'deferred', max_lag = '3600 s')"
        f" AS {COUNTED}"
    )
    for _ in range(2):
        node.session.execute("REFRESH MATERIALIZED VIEW per_kind")  # it joins its group
    yield node
    node.database.close()


@pytest.fixture
def guest(driver: ServedNode, cells: MemoryCells) -> Iterator[ServedNode]:
    node = ServedNode(cells, is_guest=True)
    yield node
    node.database.close()


def test_a_guest_reads_at_the_position_that_the_driver_holds(
    driver: ServedNode, guest: ServedNode
) -> None:
    lease = driver.ask("lease")
    driver.session.execute("UPDATE items SET price = 0")
    driver.session.execute("INSERT INTO items VALUES (4, 3, 5)")
    query = "SELECT id, price FROM items ORDER BY id"
    assert guest.fetch("query", query=query, **lease) == [(1, 10), (2, 20), (3, 30)]
    assert guest.fetch("query", query=query, **guest.ask("lease"))[-1] == (4, 5)
    parts = guest.ask("splits", table="items", count=2, **lease)
    rows = [row for part in parts for row in guest.fetch("scan", table="items", part=part, **lease)]
    assert sorted(rows) == [(1, 1, 10), (2, 1, 20), (3, 2, 30)]


def test_state_is_read_as_of_the_position_on_every_node(
    driver: ServedNode, guest: ServedNode
) -> None:
    """A batch of maintenance takes a position, but is no change: the position stays what it is."""
    driver.session.execute("UPDATE items SET price = 11 WHERE id = 1")
    changed = driver.ask("position")
    driver.session.execute("REFRESH MATERIALIZED VIEW per_kind")
    lease, view = driver.ask("lease"), find_view(driver)
    assert lease["position"] == changed
    marks = [node.ask("mark", view=view, **lease) for node in (driver, guest)]
    assert marks[0] == marks[1] < changed, "as of the position, which is before the batch"
    [part] = driver.ask("state_splits", view=view, count=1, **lease)
    asked = {"view": view, "start": part[0], "end": part[1], **lease}
    assert guest.fetch("state", **asked) == driver.fetch("state", **asked)


def find_view(node: ServedNode) -> int:
    return node.database.catalog.require_relation(View, "per_kind").id


def test_a_view_is_read_by_a_guest_brought_to_the_position(
    driver: ServedNode, guest: ServedNode
) -> None:
    driver.session.execute("UPDATE items SET price = 11 WHERE id = 1")
    lease = driver.ask("lease")
    driver.session.execute("DELETE FROM items")
    [part] = guest.ask("splits", view="per_kind", count=1, **lease)
    rows = guest.fetch("scan", view="per_kind", part=part, **lease)
    assert sorted((kind, n, int(total)) for kind, n, total in rows) == [(1, 2, 31), (2, 1, 30)]


def test_a_claim_of_the_driver_is_advanced_by_what_a_guest_read(
    driver: ServedNode, guest: ServedNode
) -> None:
    [group] = guest.ask("groups")
    claim = driver.ask("claim_take", group=group["group"], owner="job", positions_max=1000)
    driver.session.execute("INSERT INTO items VALUES (5, 2, 7)")
    claim = driver.ask("claim_renew", claim=claim, positions_max=1000)
    changes = guest.fetch("changes", after=claim[3], through=claim[4])
    assert len(changes) == 1
    assert guest.ask("groups")[0]["owner"] == "job"


def test_a_guest_is_no_node_that_others_wait_for(driver: ServedNode, guest: ServedNode) -> None:
    assert guest.database.position == driver.database.position
    known = [status.node for status in driver.database.engine.list_nodes()]
    assert known == [driver.database.engine.node]


def test_a_position_that_is_not_there_is_refused(driver: ServedNode, guest: ServedNode) -> None:
    newest = driver.ask("position")
    for position in (newest + 1, -1):
        with pytest.raises(InvalidInput, match="position is not in the log"):
            guest.ask("lease", position=position)
    driver.session.execute("UPDATE items SET price = 1")
    driver.session.execute("REFRESH MATERIALIZED VIEW per_kind")
    driver.database.engine.vacuum(driver.ask("position") - 1)
    with pytest.raises(Unavailable, match="snapshot too old"):
        guest.ask("lease", position=newest - 2)
    with pytest.raises(InvalidInput, match="unknown request"):
        guest.ask("nothing")
