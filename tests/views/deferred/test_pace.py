"""When the worker moves a group: by the time it is told, without threads."""

from __future__ import annotations

from belvedere.catalog.view_options import Schedule
from belvedere.views.deferred.lag import MaintenanceStatistics, PositionSamples
from belvedere.views.deferred.worker import (
    CROWD_MAX,
    GATHER_SHARE,
    MaintenanceScheduler,
    WorkerPlan,
)

GOAL = {1: Schedule(max_lag_us=1_000_000)}
PERIOD = {1: Schedule(refresh_every_us=5_000_000)}


def test_a_group_with_nothing_to_do_waits_for_a_commit() -> None:
    assert MaintenanceScheduler().find_due_groups(GOAL, {1: 7}, 7, 0.0) == WorkerPlan(
        frozenset(), None, idle=True
    )


def test_changes_gather_for_a_part_of_the_goal() -> None:
    pace = MaintenanceScheduler()
    assert pace.find_due_groups(GOAL, {1: 7}, 8, 10.0) == WorkerPlan(
        frozenset(), 10.0 + GATHER_SHARE
    )
    assert pace.find_due_groups(GOAL, {1: 7}, 9, 10.4) == WorkerPlan(
        frozenset(), 10.0 + GATHER_SHARE
    )
    assert pace.find_due_groups(GOAL, {1: 7}, 9, 10.0 + GATHER_SHARE).due == {1}


def test_a_group_that_takes_long_starts_earlier() -> None:
    pace = MaintenanceScheduler()
    pace.find_due_groups(GOAL, {1: 7}, 8, 10.0)
    pace.record_step_end(frozenset({1}), GOAL, 10.7, 0.2, 8)
    assert pace.find_due_groups(GOAL, {1: 8}, 9, 11.0).look_at == 11.0 + (GATHER_SHARE - 2 * 0.2)


def test_a_crowd_of_commits_gathers_for_longer() -> None:
    """But not against a goal that was given."""
    for schedules, longer in (({1: Schedule()}, CROWD_MAX), (GOAL, 1.0)):
        pace = MaintenanceScheduler()
        pace.record_step_end(frozenset({1}), schedules, 1.0, 0.0, 100)
        pace.record_step_end(frozenset({1}), schedules, 2.0, 0.0, 100_000)
        gathered = pace.find_due_groups(schedules, {1: 8}, 9, 3.0).look_at
        assert gathered == 3.0 + schedules[1].goal_s * longer * GATHER_SHARE
        pace.record_step_end(frozenset({1}), schedules, 4.0, 0.0, 100_010)
        assert (
            pace.find_due_groups(schedules, {1: 8}, 9, 5.0).look_at
            == 5.0 + schedules[1].goal_s * GATHER_SHARE
        )


def test_a_period_ticks_whether_or_not_a_step_was_late() -> None:
    pace = MaintenanceScheduler()
    assert pace.find_due_groups(PERIOD, {1: 7}, 8, 100.0) == WorkerPlan(frozenset(), 105.0)
    assert pace.find_due_groups(PERIOD, {1: 7}, 8, 105.0).due == {1}
    pace.record_step_end(frozenset({1}), PERIOD, 106.0, 1.0, 8)
    assert pace.find_due_groups(PERIOD, {1: 8}, 9, 107.0).look_at == 110.0


def test_only_the_group_that_is_due_is_moved() -> None:
    both = {1: Schedule(max_lag_us=1_000_000), 2: Schedule(max_lag_us=10_000)}
    pace = MaintenanceScheduler()
    pace.find_due_groups(both, {}, 5, 0.0)
    assert pace.find_due_groups(both, {}, 5, 0.1) == WorkerPlan(frozenset({2}), GATHER_SHARE)


def test_a_commit_matters_while_some_group_is_idle() -> None:
    both = {1: Schedule(refresh_every_us=3_600_000_000), 2: Schedule()}
    plan = MaintenanceScheduler().find_due_groups(both, {1: 4, 2: 5}, 5, 0.0)
    assert plan == WorkerPlan(frozenset(), 3600.0, idle=True)
    assert not MaintenanceScheduler().find_due_groups(both, {1: 4, 2: 4}, 5, 0.0).idle


def test_samples_bound_the_age_of_a_commit() -> None:
    samples = PositionSamples()
    assert samples.max_commit_age_after(5, 1.0) is None
    for position, now in ((5, 1.0), (5, 2.0), (5, 3.0), (9, 4.0)):
        samples.add_sample(position, now)
    assert samples.max_commit_age_after(4, 4.5) is None
    assert samples.max_commit_age_after(5, 4.5) == 1.5  # nothing after 5 was there at 3.0
    assert samples.max_commit_age_after(8, 4.5) == 1.5
    assert samples.max_commit_age_after(9, 4.5) == 0.5
    assert samples.estimate_commit_age_after(5, 4.5) == 0.5  # noticed at 4.0
    assert samples.estimate_commit_age_after(9, 4.5) == 0.0


def test_lags_have_a_distribution() -> None:
    upkeep = MaintenanceStatistics()
    assert upkeep.lag_quantile_s(0.5) is None
    for number in range(100):
        upkeep.add_batch(10, 0.001, number / 100)
    assert upkeep.lag_quantile_s(0.5) == 0.5
    assert upkeep.lag_quantile_s(0.99) == 0.99
    assert round(upkeep.seconds_per_change or 0, 6) == 0.0001
