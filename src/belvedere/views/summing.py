"""Many changes to the sums of their groups: the inner loop of deferred maintenance and backfill.

Rows of one group are added up under the group as it is, and a key is encoded once for each group,
not for each row. Groups that are one key and look different (1.0 and 1.00, two NaNs) meet when
their keys are encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from belvedere.codec.compile import compile_function
from belvedere.txn.border import Get, RowChange
from belvedere.types import Row
from belvedere.views.linear import Amounts
from belvedere.views.quick import Leg

Sums = dict[Row, list[int]]
Found = Iterable[tuple[Row, Amounts, int]]
"""Group, what one row adds, and how often it came (negative: went)."""

AddUp = Callable[[Sums, Found], None]
AddChanges = Callable[[Sums, Leg, Sequence[RowChange], Get], None]


def adder(width: int) -> AddUp:
    """Adds up groups with this many amounts."""
    names = [f"a{i}" for i in range(width)]
    taken = f"({', '.join(names)},)"
    fresh = ", ".join(f"weight * {name}" for name in names)
    lines = [
        "known_of = sums.get",
        f"for group, {taken}, weight in found:",
        "    known = known_of(group)",
        "    if known is None:",
        f"        sums[group] = [{fresh}]",
        "    else:",
        *[f"        known[{i}] += weight * {name}" for i, name in enumerate(names)],
    ]
    return compile_function("add_up", "sums, found", lines, {})


def change_adder(width: int) -> AddChanges:
    """Adds up what the changes of one table add by its leg."""
    names = [f"a{i}" for i in range(width)]
    lines = [
        "known_of, project, entry = sums.get, leg.project, leg.entry",
        "disguised = leg.disguised",
        "for _, old, new, _ in changes:",
        "    after = None if new is None else project(new)",
        "    if old is not None:",
        "        before = project(old)",
        "        if before == after and not (disguised and repr(before) != repr(after)):",
        "            continue",
        *_summed("before", "-", names),
        "    if after is not None:",
        *_summed("after", "+", names),
    ]
    return compile_function("add_changes", "sums, leg, changes, get", lines, {})


def _summed(row: str, sign: str, names: list[str]) -> list[str]:
    negative = "-" if sign == "-" else ""
    fresh = ", ".join(f"{negative}{name}" for name in names)
    return [
        f"        found = entry({row}, get)",
        "        if found is not None:",
        f"            group, ({', '.join(names)},) = found",
        "            known = known_of(group)",
        "            if known is None:",
        f"                sums[group] = [{fresh}]",
        "            else:",
        *[f"                known[{i}] {sign}= {name}" for i, name in enumerate(names)],
    ]
