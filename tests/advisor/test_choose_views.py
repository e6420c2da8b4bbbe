"""The choice of views: close to the best one, within its limits, and quick for many candidates."""

from __future__ import annotations

import random

import pytest

from belvedere.advisor.candidates.candidate import Candidate, CandidateKind
from belvedere.advisor.choice.choose_views import ChoiceLimits, choose_views
from belvedere.advisor.choice.exhaustive import choose_exhaustively
from belvedere.advisor.choice.objective import Choice, ChoiceSet, Objective, sum_bytes
from belvedere.advisor.pricing.cost_table import CandidateCost, CostTable, SavedTime

GAP_MAX = 0.05
"""How much less the chosen set may be worth than the best one, in a single case."""


def _make_table(rng: random.Random, candidates: int, queries: int) -> CostTable:
    table = CostTable()
    for number in range(queries):
        table.query_us[f"Q{number}"] = rng.uniform(50, 5_000)
        table.calls[f"Q{number}"] = rng.choice((1, 10, 100, 1_000))
    for number in range(4):
        table.write_us[f"W{number}"] = 50.0
        table.calls[f"W{number}"] = rng.choice((1, 10, 100))
    for number in range(candidates):
        some = rng.sample(sorted(table.query_us), rng.randint(1, min(4, queries)))
        savings = {
            name: SavedTime(
                table.query_us[name] * rng.uniform(0.2, 0.98),
                frozenset((rng.choice(("outer", "inner")),)),
            )
            for name in some
        }
        writes = {name: rng.uniform(1, 30) for name in rng.sample(sorted(table.write_us), 2)}
        candidate = Candidate(f"v{number}", CandidateKind.JOIN, frozenset({1}), f"SELECT {number}")
        size = rng.randint(1_000, 1_000_000)
        table.prices.append(CandidateCost(candidate, savings, writes, 10.0, size))
    return table


def test_the_choice_is_close_to_exhaustive_search(rng: random.Random) -> None:
    gaps = []
    for _ in range(40):
        table = _make_table(rng, 9, 6)
        total = sum(price.stored_bytes for price in table.prices)
        limits = ChoiceLimits(total * rng.choice((0.2, 0.5, 2.0)), slowdown_max=1e9)
        objective = Objective(table)
        best = objective.value_set(choose_exhaustively(table, limits))
        found = objective.value_set(choose_views(table, limits))
        gaps.append(1 - found / best if best > 0 else 0.0)
    print(f"gap to the best choice: mean {sum(gaps) / len(gaps):.4f}, largest {max(gaps):.4f}")
    assert max(gaps) <= GAP_MAX


def test_the_budget_and_the_slowdown_are_kept(rng: random.Random) -> None:
    for _ in range(20):
        table = _make_table(rng, 30, 8)
        limits = ChoiceLimits(1_500_000.0)
        chosen = choose_views(table, limits)
        objective = Objective(table)
        assert sum_bytes(chosen) <= limits.budget_bytes
        assert all(objective.slow_write(w, chosen) <= 2.0 for w in table.write_us)


def test_a_thousand_candidates_are_ranked(rng: random.Random) -> None:
    chosen = choose_views(_make_table(rng, 1_000, 40), ChoiceLimits(20_000_000.0))
    assert chosen


def test_a_long_query_that_no_view_helps_does_not_hide_the_others(rng: random.Random) -> None:
    table = _make_table(rng, 12, 6)
    limits = ChoiceLimits(slowdown_max=1e9)
    wanted = [one.name for one in choose_views(table, limits)]
    assert wanted
    table.query_us["long"], table.calls["long"] = 1e12, 1.0
    assert [one.name for one in choose_views(table, limits)] == wanted


def test_of_views_that_save_nearly_all_of_a_query_the_cheapest_one_is_chosen() -> None:
    table = CostTable(query_us={"Q": 1e6}, calls={"Q": 1.0})
    for name, saved in (("joined rows", 995_000.0), ("groups", 999_000.0)):
        candidate = Candidate(name, CandidateKind.JOIN, frozenset({1}), f"SELECT '{name}'")
        savings = {"Q": SavedTime(saved, frozenset({"block"}))}
        table.prices.append(CandidateCost(candidate, savings, {}, 10.0, 1_000))
    assert [one.name for one in choose_views(table, ChoiceLimits())] == ["groups"]


def test_what_one_more_view_is_worth_is_the_difference_of_two_sets(rng: random.Random) -> None:
    for _ in range(20):
        table = _make_table(rng, 30, 8)
        objective = Objective(table)
        some = rng.sample(table.prices, 6)
        chosen = [Choice(price, deferred=rng.random() < 0.3) for price in some[:5]]
        beside = ChoiceSet(objective, chosen)
        for deferred in (False, True):
            one = Choice(some[5], deferred)
            difference = objective.value_set([*chosen, one]) - objective.value_set(chosen)
            assert beside.value_addition(one) == pytest.approx(difference)
        slowest = max(objective.slow_write(w, [*chosen, Choice(some[5])]) for w in table.write_us)
        (allowed,) = beside.list_allowed_forms(some[5], slowest)
        assert not allowed.deferred
        paid = some[5].write_us
        slowed = max(objective.slow_write(w, [*chosen, Choice(some[5])]) for w in paid)
        (allowed,) = beside.list_allowed_forms(some[5], slowed * 0.999)
        assert allowed.deferred
