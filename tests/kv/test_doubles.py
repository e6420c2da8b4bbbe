"""The doubles do what they are for: differ loudly, write everything down, fail, lose power."""

from __future__ import annotations

import random
from pathlib import Path
from textwrap import dedent

import pytest

from belvedere.errors import InvalidInput, Unavailable
from belvedere.kv.doubles.faults import Fault, FaultTiming, FaultyStore, random_faults
from belvedere.kv.doubles.mirror import MirrorStore
from belvedere.kv.doubles.power_loss import PowerStore
from belvedere.kv.doubles.recorder import RecordingStore
from belvedere.kv.memory import MemoryStore
from tests.kv.stores import content

# ---- mirror


@pytest.mark.parametrize(
    ("call", "name"),
    [
        (lambda store: store.get(b"k"), "get"),
        (lambda store: store.multi_get([b"a", b"k"]), "multi_get"),
        (lambda store: list(store.scan(b"", None)), "scan"),
        (lambda store: list(store.scan(b"k", None, reverse=True, limit=1)), "scan"),
        (lambda store: list(store.scan_values(b"", None)), "scan_values"),
    ],
)
@pytest.mark.parametrize("other", [[], [(b"k", b"2")]], ids=["missing", "different"])
def test_a_mirror_names_the_call_in_which_the_stores_differ(
    call: object, name: str, other: list[tuple[bytes, bytes]]
) -> None:
    mirror = MirrorStore(MemoryStore([(b"a", b""), (b"k", b"1")]), MemoryStore(other))
    with pytest.raises(AssertionError, match=rf"the stores differ in {name}\("):
        call(mirror)  # type: ignore[operator]


def test_a_mirror_finds_a_store_that_fails_alone_or_differently() -> None:
    faulty = FaultyStore(MemoryStore(), [Fault("write", 1, FaultTiming.BEFORE)])
    with pytest.raises(AssertionError, match="differ in write"):
        MirrorStore(MemoryStore(), faulty).write([(b"k", b"v")])
    closed = MemoryStore()
    closed.close()
    failing = FaultyStore(MemoryStore(), [Fault("get", 1, FaultTiming.BEFORE)])
    with pytest.raises(AssertionError, match="differ in get"):
        MirrorStore(closed, failing).get(b"k")


def test_a_mirror_finds_a_file_that_only_one_side_has(tmp_path: Path) -> None:
    mirror = MirrorStore(MemoryStore(), MemoryStore())
    writer = mirror.sorted_file_writer(tmp_path / "file")
    writer.put(b"a", b"1")
    file = writer.finish()
    assert file is not None
    (tmp_path / "file.right").unlink()
    with pytest.raises(AssertionError, match="differ in ingest"):
        mirror.ingest([file])


# ---- recorder


def test_a_recorder_writes_one_line_for_each_call(tmp_path: Path) -> None:
    store = RecordingStore(FaultyStore(MemoryStore(), [Fault("sync", 2, FaultTiming.BEFORE)]))
    store.write([(b"k1", b"v1"), (b"k2", b"\x00\xff"), (b"gone", None)])
    store.write([(b"", b"")], sync=True)
    store.write([(b"k2", b"v2")], cleared=[(b"k2", b"k3"), (b"x", b"y")])
    store.write([(b"k2", b"\x00\xff")])
    store.get(b"k1"), store.get(b"k9"), store.multi_get([b"k1", b"k9"])
    list(store.scan(b"k", None, batch_rows=1))
    list(store.scan(b"", b"k2", reverse=True, limit=1))
    list(store.scan_values(b"k", None))
    store.delete_range(b"k1", b"k2")
    with pytest.raises(Unavailable):
        store.sync()
    with pytest.raises(InvalidInput):
        store.write([("text", b"x")])  # type: ignore[list-item]
    writer = store.sorted_file_writer(tmp_path / "file")
    writer.put(b"k5", b"v" * 300)
    file = writer.finish()
    assert file is not None
    store.ingest([file])
    store.get(b"k5")
    store.checkpoint(tmp_path / "copy")
    store.close()
    expected = f"""\
        write k1=v1, k2=\\x00\\xff, gone=(deleted) -> done
        write ''='', sync -> done
        write clear [k2, k3), clear [x, y), k2=v2 -> done
        write k2=\\x00\\xff -> done
        get k1 -> v1
        get k9 -> (none)
        multi_get k1, k9 -> v1, (none)
        scan [k, end) -> k1=v1
        scan [k, end) -> k2=\\x00\\xff
        scan [k, end) -> (end)
        scan ['', k2) reverse limit 1 -> k1=v1
        scan ['', k2) reverse limit 1 -> (end)
        scan_values [k, end) -> v1, \\x00\\xff
        scan_values [k, end) -> (end)
        delete_range [k1, k2) -> done
        sync -> fails: Unavailable 58030 input or output failed
        write 'text'=x -> fails: InvalidInput 42804 keys and values must be bytes
        sorted_file_writer file -> done
        ingest file -> done
        get k5 -> {"v" * 200}.. (300 bytes)
        checkpoint copy -> done
        close -> done
    """
    assert store.lines == dedent(expected).splitlines()


# ---- faults


def test_a_fault_strikes_the_nth_call_once(tmp_path: Path) -> None:
    store = FaultyStore(MemoryStore(), [Fault("write", 2, FaultTiming.BEFORE)])
    store.write([(b"a", b"1")])
    with pytest.raises(Unavailable) as failed:
        store.write([(b"b", b"1")])
    assert failed.value.sqlstate == "58030"
    assert failed.value.facts == {"call": "write", "nth": 2}
    store.write([(b"c", b"1")])
    assert [key for key, _ in content(store)] == [b"a", b"c"]
    assert store.struck == [Fault("write", 2, FaultTiming.BEFORE)]


@pytest.mark.parametrize(
    ("when", "left"),
    [
        (FaultTiming.BEFORE, []),
        (FaultTiming.AFTER, [b"a", b"b", b"c"]),
        (FaultTiming.TORN, [b"a", b"b"]),
    ],
)
def test_a_failed_write_leaves_what_its_fault_says(when: FaultTiming, left: list[bytes]) -> None:
    store = FaultyStore(MemoryStore(), [Fault("write", 1, when)])
    with pytest.raises(Unavailable):
        store.write([(b"a", b""), (b"b", b""), (b"c", b"")])
    assert [key for key, _ in content(store)] == left


def test_every_call_can_be_made_to_fail(tmp_path: Path) -> None:
    store = FaultyStore(MemoryStore([(b"k", b"v")]))
    calls = {
        "get": lambda: store.get(b"k"),
        "multi_get": lambda: store.multi_get([b"k"]),
        "scan": lambda: list(store.scan(b"", None)),
        "scan_values": lambda: list(store.scan_values(b"", None)),
        "write": lambda: store.write([(b"k", b"v")]),
        "delete_range": lambda: store.delete_range(b"x", b"y"),
        "sync": store.sync,
        "checkpoint": lambda: store.checkpoint(tmp_path / "copy"),
        "ingest": lambda: store.ingest([]),
        "sorted_file_writer": lambda: store.sorted_file_writer(tmp_path / "file").finish(),
        "close": store.close,
    }
    for name, call in calls.items():
        store.add_fault(name, FaultTiming.BEFORE)
        with pytest.raises(Unavailable):
            call()
        call()
    assert [fault.call for fault in store.struck] == list(calls)


def test_a_synced_write_can_fail_in_its_sync() -> None:
    power = PowerStore(MemoryStore())
    store = FaultyStore(power, [Fault("sync", 1, FaultTiming.BEFORE)])
    with pytest.raises(Unavailable):
        store.write([(b"a", b"1")], sync=True)
    assert store.get(b"a") == b"1"
    assert power.unsynced_batches == 1
    assert content(power.cut_power()) == []


def test_a_skipped_sync_says_yes_and_does_nothing() -> None:
    power = PowerStore(MemoryStore())
    store = FaultyStore(power, [Fault("sync", 1, FaultTiming.SKIPPED)])
    store.write([(b"a", b"1")], sync=True)
    assert content(power.cut_power()) == []


@pytest.mark.parametrize(
    ("call", "when"),
    [("get", FaultTiming.SKIPPED), ("sync", FaultTiming.TORN), ("get", FaultTiming.TORN)],
)
def test_a_fault_that_makes_no_sense_is_refused(call: str, when: FaultTiming) -> None:
    with pytest.raises(ValueError):
        Fault(call, 1, when)


def test_random_faults_are_honest_and_come_from_their_seed(seed: int) -> None:
    faults = random_faults(random.Random(seed), count=50, horizon=9)
    assert faults == random_faults(random.Random(seed), count=50, horizon=9)
    assert faults != random_faults(random.Random(seed + 1), count=50, horizon=9)
    assert {fault.when for fault in faults} == {FaultTiming.BEFORE, FaultTiming.AFTER}
    assert all(1 <= fault.nth <= 9 for fault in faults)


# ---- power


def test_a_power_cut_takes_what_was_not_synced() -> None:
    store = PowerStore(MemoryStore())
    store.write([(b"a", b"1"), (b"b", b"1"), (b"r1", b"1")])
    store.sync()
    store.write([(b"a", b"2"), (b"c", b"2")])
    store.write([(b"b", None), (b"a", b"3")])
    store.delete_range(b"r", b"s")
    store.write([(b"b", b"4")], cleared=[(b"a", b"b"), (b"r", b"s")])
    assert store.unsynced_batches == 4
    survived = store.cut_power()
    assert content(survived) == [(b"a", b"1"), (b"b", b"1"), (b"r1", b"1")]
    with pytest.raises(Unavailable):
        store.get(b"a")


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        (0, [(b"a", b"1")]),
        (1, [(b"a", b"2"), (b"c", b"2")]),
        (2, [(b"a", b"3"), (b"c", b"2")]),
        (9, [(b"a", b"3"), (b"c", b"2")]),
    ],
)
def test_some_first_unsynced_batches_may_survive(
    kept: int, expected: list[tuple[bytes, bytes]]
) -> None:
    store = PowerStore(MemoryStore())
    store.write([(b"a", b"1")], sync=True)
    store.write([(b"a", b"2"), (b"c", b"2")])
    store.write([(b"a", b"3")])
    assert content(store.cut_power(kept_batches=kept)) == expected


def test_ingested_rows_survive_where_earlier_writes_do_not(tmp_path: Path) -> None:
    store = PowerStore(MemoryStore())
    store.write([(b"a", b"unsynced"), (b"b", b"unsynced")])
    writer = store.sorted_file_writer(tmp_path / "file")
    writer.put(b"a", b"ingested")
    file = writer.finish()
    assert file is not None
    store.ingest([file])
    store.write([(b"a", b"after")])
    assert content(store.cut_power()) == [(b"a", b"ingested")]


def test_a_refused_write_leaves_no_trace_for_the_cut() -> None:
    store = PowerStore(MemoryStore([(b"a", b"1")]))
    with pytest.raises(InvalidInput):
        store.write([(b"a", b"2"), (b"b", "text")])  # type: ignore[list-item]
    assert store.unsynced_batches == 0
    assert content(store.cut_power()) == [(b"a", b"1")]
