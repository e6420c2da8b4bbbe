"""Every interleaving of the small cases; and each bug of an earlier draft, put back, is found."""

from __future__ import annotations

import pytest

from belvedere.errors import Corruption
from tests.mutations.registry import ROW, mutated
from tests.simulation.row.cases import ON_DEMAND, all_cases, fallen_counter_case
from tests.simulation.row.explorer import Explorer

CATCHES = {
    "position_before_stamp": "one lock",
    "position_fetched_ahead": "one lock, read late",
    "abort_marker_trimmed": "zombie, trim",
    "record_under_old_catalog": "ddl",
    "lost_reply_after_trim": "lost reply, trim",
    "primary_not_first": "broken secondary",
    "load_without_waiting": "load",
    "hold_not_looked_at": "load",
    "hold_of_live_load_removed": "load, ended by a writer",
}


@pytest.mark.parametrize("name", [name for name in all_cases() if name not in ON_DEMAND])
def test_no_interleaving_loses_doubles_or_halves_a_write(name: str) -> None:
    report = Explorer(all_cases()[name]).run()
    print(report.summary())
    assert not report.violation, report.summary()
    assert report.endings > 0


def test_a_counter_that_forgets_what_it_handed_out_is_noticed() -> None:
    """So increments are synced like every other write (docs/decisions, "synced counter")."""
    with pytest.raises(Corruption, match="position taken by somebody else"):
        Explorer(fallen_counter_case()).run()


@pytest.mark.parametrize("bug", list(ROW))
def test_a_bug_put_back_is_found_with_its_interleaving(bug: str) -> None:
    with mutated(bug):
        report = Explorer(all_cases()[CATCHES[bug]]).run()
    print(report.summary())
    assert report.violation
    assert len(report.interleaving) > 10
