"""Sums of changes by group: the inner loop of deferred maintenance and backfill.

Rows of one group are added up under the group's values, and a key is encoded once for each group,
not for each row. Groups with one key but different representations (1.0 and 1.00, two NaNs) are
merged when their keys are encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from belvedere.codec.compile import compile_function
from belvedere.execution.python.expressions.generated_function import tuple_source
from belvedere.txn.contracts import Get
from belvedere.types import Row
from belvedere.views.codegen.state_entry import ONE_TEXT
from belvedere.views.delta.linear_aggregates import Amounts

GroupSums = dict[Row, list[int]]
WeightedEntries = Iterable[tuple[Row, Amounts, int]]
"""Group, the amounts of one row, and its weight (negative: deleted)."""

AddEntries = Callable[[GroupSums, WeightedEntries], None]
AddRows = Callable[[GroupSums, Sequence[Row], Get], None]


def compile_group_adder(width: int) -> AddEntries:
    """A function that adds up groups with this many amounts."""
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


def generate_group_addition_lines(amounts: list[str], sign: str) -> list[str]:
    """Lines that add amounts to those of the group `g`, or subtract them."""
    minus = "-" if sign == "-" else ""
    if any(text.startswith("*") for text in amounts):
        each = "-a for a in m" if minus else "m"
        lines = [f"m = {tuple_source(amounts)}", "known = known_of(g)", "if known is None:"]
        lines += [f"    sums[g] = [{each}]" if minus else "    sums[g] = list(m)", "else:"]
        return [*lines, f"    known[:] = [k {sign} a for k, a in zip(known, m)]"]
    names = [ONE_TEXT if text == ONE_TEXT else f"m{i}" for i, text in enumerate(amounts)]
    lines = [f"{name} = {text}" for name, text in zip(names, amounts) if name != ONE_TEXT]
    lines += ["known = known_of(g)", "if known is None:"]
    lines += [f"    sums[g] = [{', '.join(minus + name for name in names)}]", "else:"]
    return lines + [f"    known[{i}] {sign}= {name}" for i, name in enumerate(names)]
