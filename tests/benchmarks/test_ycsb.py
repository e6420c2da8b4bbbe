"""YCSB runs at any size, and all three systems answer the same."""

from __future__ import annotations

from pathlib import Path

from belvedere.benchmarks import ycsb


def test_every_mix_is_measured() -> None:
    report = ycsb.run(300, seed=1)
    names = [figure.name for figure in report.figures]
    assert len(names) == 6 + 2 * len(ycsb.MIXES) + 7
    assert {"cached SELECT 1", "uncached point select", "import belvedere"} <= set(names)
    assert all(figure.value > 0 for figure in report.figures)


def test_belvedere_and_sqlite_answer_the_same(tmp_path: Path) -> None:
    systems = [ycsb.BelvedereSystem(tmp_path / "b"), ycsb.SqliteSystem(tmp_path / "s")]
    for system in systems:
        for number in range(50):
            system.insert(ycsb.row_key(number), ycsb.row_fields(number))
        system.update(ycsb.row_key(7), "changed")
    ours, lite = systems
    for number in range(50):
        key = ycsb.row_key(number)
        assert ours.read(key) == lite.read(key)
        assert ours.scan(key, 5) == lite.scan(key, 5)
    for system in systems:
        system.close()
