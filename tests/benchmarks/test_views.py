"""The benchmark of views measures what it says, at any size; how fast is not for a test."""

from __future__ import annotations

import io
import json
import random
from functools import partial
from pathlib import Path

import pytest
from rich.console import Console

from belvedere.benchmarks.report import postgres_peer
from belvedere.benchmarks.report.measurements import (
    BenchmarkReport,
    Figure,
    alternate_rounds,
    better_quarter,
)
from belvedere.benchmarks.report.plots import Plot, bar_points, logarithmic_ticks, save_plots
from belvedere.benchmarks.views import deferred_views, matrix, suite, workload
from belvedere.errors import Error

SCALE = 0.001


@pytest.mark.parametrize("name", [name for name in suite.STEPS if name not in ("e", "f")])
def test_every_step_measures_something(name: str) -> None:
    report = suite.run_steps("views", {name: suite.STEPS[name]}, SCALE, seed=1)
    assert report.figures or report.absent
    assert all(figure.value > 0 for figure in report.figures)


def test_many_views_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred_views, "VIEW_COUNTS", (1, 3))
    report = suite.run_steps("views", {"f": deferred_views.measure_many_views}, SCALE, seed=1)
    assert [f.name.split(",")[0] for f in report.figures[::6]] == [
        "(f) 1 deferred views",
        "(f) 3 deferred views",
    ]
    lags = [f.value for f in report.figures if "commit to visible" in f.name]
    assert len(lags) == 2
    assert min(lags) > 0
    of_one, of_three = [f.value for f in report.figures if f.name.endswith(", state")]
    assert of_three > of_one > 0


def test_the_matrix_has_every_cell_or_says_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix, "SIZES", (100_000, 200_000))
    report = suite.run_steps("views", {"e": matrix.measure_matrix}, SCALE, seed=1)
    if report.absent:
        assert "refresh_every" in report.absent[0]
        return
    against_full = [f for f in report.figures if f.name.endswith("/ full")]
    assert len(against_full) == 2 * len(matrix.SHARES) * len(matrix.VIEWS)
    assert len([f for f in report.figures if f.name.endswith("/ PostgreSQL")]) == len(against_full)


def test_a_window_changes_thirds_and_keeps_its_size(tmp_path: Path) -> None:
    with workload.open_connection(tmp_path / "s") as connection:
        connection.execute("CREATE TABLE t (id integer PRIMARY KEY, g integer, v bigint)")
        workload.load_rows(connection, "t", "i, i, i", 30)
        window = matrix.LiveIds(0, 30)
        window.apply_changes(window.third_of_share(0.5), connection.execute)
        rows = connection.execute("SELECT id, v FROM t ORDER BY id").fetchall()
    assert [row[0] for row in rows] == list(range(5, 35))
    assert [row[0] for row in rows if row[1] != row[0]] == [5, 6, 7, 8, 9]


def test_a_lag_ends_with_the_first_watermark_at_or_past_the_commit() -> None:
    committed = [(5, 1.0), (6, 1.5), (9, 2.0)]
    seen = [(4, 0.5), (6, 1.75), (8, 2.0), (10, 4.0)]
    assert deferred_views.compute_lags(committed, seen) == [0.75, 0.25, 2.0]


def test_keys_of_a_zipf_distribution_repeat_the_first_ones(rng: random.Random) -> None:
    keys = workload.zipfian_keys(rng, 1000, 5000)
    assert keys.count(0) > 20 * max(keys.count(900), 1)
    assert max(keys) < 1000


def test_mixed_statements_delete_each_row_once(rng: random.Random) -> None:
    statements = workload.mix_changes(rng, "t", 50, 40, 5)
    deleted = [s.parameters[0] for s in statements if s.text.startswith("DELETE")]
    assert len(deleted) == len(set(deleted)) > 0


def test_plots_are_drawn_in_both_formats(tmp_path: Path) -> None:
    files = save_plots(
        [Plot("A title!", "x", "y", {"one": [(1, 2), (2, 3)]}, True)], tmp_path / "p"
    )
    assert [file.name for file in files] == ["a_title.png", "a_title.svg"]
    assert files[0].read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in files[1].read_bytes()


def test_bars_have_names_and_values_and_curves_a_legend(tmp_path: Path) -> None:
    curves = {"one": bar_points([1.0, 2000.0]), "two": bar_points([3.0, 4.0])}
    plots = [
        Plot("Bars (of a run)", "", "a second", curves, bars=("first", "second")),
        Plot("Lines", "views", "ms", {str(n): [(1, n), (2, n)] for n in range(1, 6)}),
    ]
    bars, lines = (
        file.read_text() for file in save_plots(plots, tmp_path) if file.suffix == ".svg"
    )
    assert (tmp_path / "bars.png").stat().st_size > 1_000
    for text in ("first", "second", "2,000", "a second", "one", "two"):
        assert f"<!-- {text} -->" in bars
    for text in ("views", "ms", "5"):
        assert f"<!-- {text} -->" in lines


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.8, 1200, [1, 10, 100, 1000]),
        (330, 7100, [500, 1000, 2000, 5000]),
        (0.018, 0.55, [0.02, 0.05, 0.1, 0.2, 0.5]),
    ],
)
def test_a_logarithmic_axis_has_ticks_also_when_it_is_short(
    low: float, high: float, ticks: list[float], tmp_path: Path
) -> None:
    assert logarithmic_ticks(low, high) == pytest.approx(ticks)
    plot = Plot("Short", "x", "y", {"": [(1, low), (2, high)]}, logarithmic_y=True)
    drawn = next(file for file in save_plots([plot], tmp_path) if file.suffix == ".svg").read_text()
    assert all(f"<!-- {tick:,g} -->" in drawn for tick in ticks)


def test_the_better_quarter_leaves_out_what_was_disturbed() -> None:
    assert better_quarter([9.0, 2.0, 1.0, 30.0]) == 2.0
    sides = [iter([9.0, 2.0, 1.0, 30.0]), iter([5.0, 4.0, 3.0, 2.0])]
    assert alternate_rounds(4, *(partial(next, side) for side in sides)) == [2.0, 3.0]


def test_a_report_tells_what_is_published_and_what_is_not_there(tmp_path: Path) -> None:
    report = BenchmarkReport("w", 1, [Figure("a", 1.0, "ms", published="5 s")])
    report.absent.append("b: not yet")
    report.write_json(tmp_path / "r.json")
    written = json.loads((tmp_path / "r.json").read_text())
    assert written["figures"][0]["published"] == "5 s"
    assert written["absent"] == ["b: not yet"]


@pytest.mark.parametrize("width", [80, 200])
def test_a_report_shows_names_whole_on_any_terminal(width: int) -> None:
    name = "(e) 1000000 rows, 50% changed, join + aggregate / PostgreSQL"
    figure = Figure(name, 248_000.0, "changes/s", ">= 200000 value", 1.0, "31.4 -> 95.4 ms (0.3x)")
    text = io.StringIO()
    BenchmarkReport("views", 1, [figure]).print(Console(file=text, width=width))
    printed = text.getvalue()
    assert max(map(len, printed.splitlines())) <= width
    words = printed.split()
    assert set(name.split()) < set(words)
    assert {"248,000", "changes/s", "200000", "met", "31.4", "(0.3x)"} < set(words)


def test_parts_are_run_by_their_letter() -> None:
    report = suite.run(SCALE, 1, ["d"])
    assert {figure.name[:3] for figure in report.figures} == {"(d)"}


def test_what_a_thread_raises_is_raised_by_join() -> None:
    def fail() -> None:
        raise Error("from a thread")

    with pytest.raises(Error, match="from a thread"):
        workload.ThreadGroup(fail).join()


def test_without_the_wheel_there_is_no_peer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_peer, "PACKAGE", "no_such_package")
    with postgres_peer.postgres_connection() as server:
        assert server is None
