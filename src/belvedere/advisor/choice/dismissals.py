"""Why candidates were not chosen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from belvedere.advisor.choice.objective import Choice, Objective
from belvedere.advisor.pricing.cost_table import CandidateCost


@dataclass(frozen=True, slots=True)
class Dismissal:
    """A candidate that was not chosen, and why."""

    name: str
    definition: str
    reason: str


def list_dismissals(
    objective: Objective, chosen: Sequence[Choice], budget_bytes: float
) -> Iterator[Dismissal]:
    for one in objective.table.rejected:
        yield Dismissal(one.candidate.name, one.candidate.write_ddl(), f"impossible: {one.reason}")
    used = {id(choice.price) for choice in chosen}
    for price in objective.table.prices:
        if id(price) not in used:
            reason = _find_reason(objective, price, chosen, budget_bytes)
            yield Dismissal(price.candidate.name, price.candidate.write_ddl(), reason)


def _find_reason(
    objective: Objective, price: CandidateCost, chosen: Sequence[Choice], budget_bytes: float
) -> str:
    if not price.savings:
        refused = [f"{query}: {reason}" for query, reason in price.refusals.items()]
        return "it makes no query faster" + (f" ({'; '.join(refused)})" if refused else "")
    if price.stored_bytes > budget_bytes:
        return f"it takes {format_bytes(price.stored_bytes)}, more than the budget"
    alone = Choice(price)
    saved, upkeep = objective.sum_savings([alone]), objective.sum_upkeep_cost(alone)
    if saved <= upkeep:
        return f"writes would pay {upkeep / 1000:.1f} ms for {saved / 1000:.1f} ms saved"
    more = objective.sum_savings([*chosen, alone]) - objective.sum_savings(chosen)
    if more < saved / 2 and chosen:
        others = [c.name for c in chosen if c.price.savings.keys() & price.savings.keys()]
        return f"{', '.join(others[:3])} does most of what it would do"
    if more <= upkeep:
        return f"beside the others it saves {more / 1000:.1f} ms and costs {upkeep / 1000:.1f} ms"
    used = sum(choice.price.stored_bytes for choice in chosen)
    if used + price.stored_bytes > budget_bytes:
        return f"no room for its {format_bytes(price.stored_bytes)} within the budget"
    return f"it saves {more / 1000:.2f} ms of the workload, too little for one more view"


def format_bytes(count: float) -> str:
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    raise AssertionError("unreachable")
