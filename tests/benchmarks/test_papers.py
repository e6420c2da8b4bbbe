"""The experiments of the papers run at any size, and stand beside what was published."""

from __future__ import annotations

import pytest

from belvedere.benchmarks.papers import cloudtps, pnuts, pnuts_queries, vms
from belvedere.benchmarks.report.measurements import BenchmarkReport

SCALE = 0.002


def _names(report: BenchmarkReport) -> str:
    assert all(figure.value >= 0 for figure in report.figures)
    return "\n".join([figure.name for figure in report.figures] + report.absent)


def test_vms_has_every_view_type_reading_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vms, "SCAN_ROWS", (1_000, 100_000))
    report = vms.run(SCALE, seed=1)
    names = _names(report)
    assert all(f"{view}, maintained" in names for view in vms.VIEWS)
    for wanted in ("zipf keys", "8 count views", "client scan", "server scan", "view:"):
        assert wanted in names
    assert any("40%" in figure.published for figure in report.figures)
    assert {plot.file_name for plot in report.plots} == {
        "vms_view_types",
        "vms_maintenance_alone",
        "vms_number_of_views",
        "vms_reading_a_count",
    }


def test_cloudtps_has_every_mode_size_and_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cloudtps, "SECONDS", 1.0)
    report = cloudtps.run(SCALE, seed=1)
    names = _names(report)
    for wanted in ("no view", "synchronous", "asynchronous", *cloudtps.INTERVALS):
        assert wanted in names
    assert "applied, 1 rows" in names or "applying on its own" in names
    assert len(report.plots) == 3
    for size in cloudtps.UPDATE_SIZES:
        assert f"synchronous, {size} rows a transaction" in names


def test_pnuts_has_every_form_or_says_what_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pnuts, "RATIOS", (8, 1))
    monkeypatch.setattr(pnuts, "RATES", (1_000, 8_000))
    monkeypatch.setattr(pnuts_queries, "PARTITION_COUNTS", (1, 64))
    monkeypatch.setattr(pnuts_queries, "VALUES", (250, 500))
    report = pnuts.run(SCALE, seed=1)
    names = _names(report)
    for wanted in (*pnuts.FORMS, "local on base", "local on remote", "co-located"):
        assert wanted in names
    for wanted in (
        "staleness, mean",
        "clients first, spike (6000/s), largest backlog",
        "thin + base",
        "64 partitions",
    ):
        assert wanted in names
    assert len(report.plots) == 7
    assert "437 ms" in [figure.published for figure in report.figures]
