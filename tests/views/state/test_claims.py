"""Claims: somebody else maintains a group, exactly once, and hands it back."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from belvedere.errors import Unavailable
from belvedere.views.changefeed.entries import Addition
from belvedere.views.deferred.batch import MaintenanceUnit, compute_batch_per_unit
from belvedere.views.deferred.driver import CLAIM_EXPIRY_S, DeferredMaintenance
from belvedere.views.state import claims
from belvedere.views.state.claims import Claim
from belvedere.views.state.watermarks import list_attached_group_views, read_watermark
from tests.views.deferred.test_batch import until
from tests.views.sql import Store, opened

TOTALS = "SELECT g, count(*) AS c, sum(v) AS s FROM t GROUP BY g"
PAIRS = "SELECT a.id AS x, b.id AS y FROM t a JOIN t b ON a.g = b.g"


@pytest.fixture
def store() -> Iterator[Store]:
    with opened() as made:
        made.run("CREATE TABLE t (id int PRIMARY KEY, g int, v int)")
        for name, query in (("totals", TOTALS), ("pairs", PAIRS)):
            made.run(f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = 'deferred') AS {query}")
        until(lambda: settled(made))
        yield made


def group(store: Store) -> int:
    return store.view("totals").group


def settled(store: Store) -> bool:
    with store.db.begin() as reader:
        at = read_watermark(reader, group(store))
        return len(list_attached_group_views(reader, group(store))) == 2 and at == reader.position


def additions(store: Store, held: Claim) -> list[Addition]:
    """What another maintainer works out for its claim."""
    with store.db.begin() as reader:
        assert held.end == reader.position
        unit = MaintenanceUnit(
            held.group, held.group, held.start, list_attached_group_views(reader, held.group)
        )
        return [
            one
            for batch in compute_batch_per_unit(
                store.db.views.registry, store.db.log, reader, [unit]
            )
            for one in batch.additions
        ]


def insert(store: Store, *ids: int) -> None:
    for id_ in ids:
        store.run(f"INSERT INTO t VALUES ({id_}, {id_ % 2}, {id_})")


def test_another_maintainer_takes_over_and_hands_back_without_a_gap(store: Store) -> None:
    insert(store, 1, 2)
    held = claims.take_claim(store.db.commits, group(store), "spark")
    insert(store, 3, 4)
    at = store.db.views.read_view_watermark(store.view("totals"))
    held = claims.extend_claim(store.db.commits, held)
    assert (held.start, held.end) == (at, store.db.position)
    held = claims.advance_claim(store.db.commits, held, additions(store, held))
    assert store.db.views.read_view_watermark(store.view("totals")) == store.db.position
    insert(store, 5)
    held = claims.extend_claim(store.db.commits, held)
    held = claims.advance_claim(store.db.commits, held, additions(store, held))
    claims.release_claim(store.db.commits, held)
    insert(store, 6)
    until(lambda: store.db.views.read_view_watermark(store.view("pairs")) == store.db.position)
    assert set(store.verified().values()) == {True}
    assert store.run("SELECT * FROM totals ORDER BY g") == [(0, 3, 12), (1, 3, 9)]


def test_the_worker_leaves_a_claimed_group_alone(store: Store) -> None:
    held = claims.take_claim(store.db.commits, group(store), "spark")
    insert(store, 1)
    store.db.views.deferred.advance_groups([held.group])
    assert store.db.views.read_view_watermark(store.view("totals")) == held.start
    with pytest.raises(Unavailable) as found:
        store.run("REFRESH MATERIALIZED VIEW totals")
    assert found.value.sqlstate == "55006"
    assert store.run("SELECT * FROM totals") == [(1, 1, 1)]


def test_a_second_owner_is_refused_until_it_says_force(store: Store) -> None:
    first = claims.take_claim(store.db.commits, group(store), "spark one")
    with pytest.raises(Unavailable) as found:
        claims.take_claim(store.db.commits, group(store), "spark two")
    assert found.value.facts["owner"] == "spark one"
    insert(store, 1)
    second = claims.take_claim(store.db.commits, group(store), "spark two", force=True)
    assert second.epoch > first.epoch
    for use in (
        lambda: claims.advance_claim(store.db.commits, first, []),
        lambda: claims.extend_claim(store.db.commits, first),
        lambda: claims.release_claim(store.db.commits, first),
    ):
        with pytest.raises(Unavailable) as late:
            use()
        assert late.value.sqlstate == "55006"
    claims.advance_claim(store.db.commits, second, additions(store, second))
    assert set(store.verified().values()) == {True}


def test_a_stretch_is_applied_once(store: Store) -> None:
    held = claims.take_claim(store.db.commits, group(store), "spark")
    insert(store, 1)
    held = claims.extend_claim(store.db.commits, held)
    work = additions(store, held)
    claims.advance_claim(store.db.commits, held, work)
    with pytest.raises(Unavailable):
        claims.advance_claim(store.db.commits, held, work)
    assert set(store.verified().values()) == {True}


def test_an_owner_that_comes_back_gets_the_stretch_it_had(store: Store) -> None:
    held = claims.take_claim(store.db.commits, group(store), "spark")
    insert(store, 1)
    held = claims.extend_claim(store.db.commits, held)
    insert(store, 2)
    again = claims.take_claim(store.db.commits, group(store), "spark")
    assert (again.start, again.end) == (held.start, held.end)
    assert again.epoch == held.epoch + 1


def test_a_group_that_got_another_view_has_to_be_claimed_again(store: Store) -> None:
    held = claims.take_claim(store.db.commits, group(store), "spark")
    insert(store, 1)
    held = claims.extend_claim(store.db.commits, held)
    work = additions(store, held)
    store.run("DROP MATERIALIZED VIEW pairs")
    with pytest.raises(Unavailable) as found:
        claims.advance_claim(store.db.commits, held, work)
    assert found.value.sqlstate == "40001"
    held = claims.extend_claim(store.db.commits, held)
    claims.advance_claim(store.db.commits, held, additions(store, held))
    assert store.verified() == {"totals": True}


def test_a_view_made_while_the_group_is_claimed_is_kept_by_the_worker(store: Store) -> None:
    held = claims.take_claim(store.db.commits, group(store), "spark")
    store.run(f"CREATE MATERIALIZED VIEW more WITH (maintenance = 'deferred') AS {TOTALS}")
    insert(store, 1)
    until(lambda: store.db.views.read_view_watermark(store.view("more")) == store.db.position)
    assert store.db.views.read_view_watermark(store.view("totals")) == held.start
    claims.release_claim(store.db.commits, claims.extend_claim(store.db.commits, held))
    until(lambda: store.db.views.read_view_watermark(store.view("totals")) == store.db.position)
    assert set(store.verified().values()) == {True}


def test_a_claim_that_does_not_move_is_taken_away(store: Store) -> None:
    held = claims.take_claim(store.db.commits, group(store), "spark that died")
    insert(store, 1)
    now = [0.0]
    db = store.db
    driver = DeferredMaintenance(
        db.commits, db.log, db.views.registry, db.visibility, db.views.errors, clock=lambda: now[0]
    )
    driver.advance_groups([held.group])
    assert db.views.read_view_watermark(store.view("totals")) == held.start
    now[0] += CLAIM_EXPIRY_S + 1
    driver.advance_groups([held.group])
    assert db.views.read_view_watermark(store.view("totals")) == db.position
    with pytest.raises(Unavailable):
        claims.advance_claim(db.commits, held, [])
    assert set(store.verified().values()) == {True}
