"""The checker finds every planted anomaly, and nothing in histories that are right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.simulation.history.anomalies import CLEAN, PLANTED, TOTAL, append, read, txn
from tests.simulation.history.checker import check
from tests.simulation.history.events import LEVELS, SERIALIZABLE, HistoryFile, read_history


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_anomaly_is_found(name: str) -> None:
    level, kind, history = PLANTED[name]
    found = check(history, level, TOTAL)
    assert kind in {anomaly.kind for anomaly in found}, found


@pytest.mark.parametrize("name", PLANTED)
def test_an_anomaly_is_an_anomaly_at_every_stricter_level(name: str) -> None:
    level, _, history = PLANTED[name]
    for stricter in LEVELS[LEVELS.index(level) :]:
        assert check(history, stricter, TOTAL), stricter


@pytest.mark.parametrize("name", CLEAN)
def test_a_history_that_is_right_passes(name: str) -> None:
    level, history = CLEAN[name]
    assert check(history, level, TOTAL) == []


@given(st.randoms(use_true_random=False), st.integers(1, 30))
def test_any_serial_history_passes(random: object, count: int) -> None:
    """Transactions run one after the other on plain lists."""
    lists: dict[str, list[int]] = {}
    history = []
    for number in range(count):
        ops = []
        for step in range(random.randint(1, 4)):  # type: ignore[attr-defined]
            key = random.choice("xyz")  # type: ignore[attr-defined]
            ops.append(read(key, *lists.get(key, [])))
            if random.random() < 0.5:  # type: ignore[attr-defined]
                ops.append(append(key, number * 10 + step))
                lists.setdefault(key, []).append(number * 10 + step)
        at = (number * 2, number * 2 + 1)
        history.append(txn(f"t{number}", *ops, at=at, session=f"s{number % 3}"))
    assert check(history, SERIALIZABLE) == []


def test_a_history_survives_its_file_and_a_cut_line(tmp_path: object) -> None:
    path = tmp_path / "history"  # type: ignore[operator]
    file = HistoryFile(path)
    first = txn("a", ("scan", None, {1: [5], 2: []}), append("x", 1), outcome="unknown")
    file.note(first)
    file.note(txn("b", read("x", 1)))
    first.outcome = "committed"
    file.note(first)
    file.close()
    with path.open("ab") as raw:
        raw.write(b'{"id":"c"')
    assert read_history(path) == [first, txn("b", read("x", 1))]
    later = HistoryFile(path)
    later.note(txn("d", read("x", 1)))
    later.close()
    assert read_history(path) == [first, txn("b", read("x", 1)), txn("d", read("x", 1))]
