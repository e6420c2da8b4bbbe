"""The history checker: from what clients saw, was there one order in which it all happened?

It uses what clients recorded and nothing of the protocol: transactions in order of their positions
are replayed on a plain dictionary. Every committed one must be there once, everything read at a
snapshot must be the state after exactly the transactions up to it, nothing told aborted may show,
and rules that span rows must hold in every state. Transactions of unknown outcome count as
committed if a final look says so; the replay then shows whether that is true.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable

from tests.simulation.row.workload import ACCOUNTS, BALANCE, PARENTS, Transaction

State = dict[str, str]


def violations(
    transactions: Iterable[Transaction], outcomes: dict[str, int], final: dict[str, str | None]
) -> list[str]:
    """What is wrong with a history. `outcomes`: positions of unknown ones that turned out
    committed."""
    wrong: list[str] = []
    every = list(transactions)
    committed = []
    for transaction in every:
        if transaction.outcome == "unknown" and transaction.name in outcomes:
            transaction.position = outcomes[transaction.name]
            committed.append(transaction)
        elif transaction.outcome == "committed" and transaction.kind != "look":
            committed.append(transaction)
            if outcomes.get(transaction.name, transaction.position) != transaction.position:
                wrong.append(f"{transaction.name} has two outcomes")
        elif transaction.name in outcomes:
            wrong.append(f"{transaction.name} was told {transaction.outcome} and is committed")
    committed.sort(key=lambda transaction: transaction.position)
    positions = [transaction.position for transaction in committed]
    if len(set(positions)) != len(positions):
        wrong.append("two transactions at one position")
    states = _replay(committed, wrong)
    for transaction in every:
        seen = states[bisect_right(positions, transaction.snapshot)]
        wrong += _wrong_reads(transaction, seen)
        if 0 <= transaction.snapshot < transaction.token:
            wrong.append(f"{transaction.name} read below its own writes")
    wrong += [
        f"final {name} is {value!r}, replay says {states[-1].get(name)!r}"
        for name, value in final.items()
        if states[-1].get(name) != value
    ]
    return wrong


def _replay(committed: list[Transaction], wrong: list[str]) -> list[State]:
    """States after 0, 1, 2, .. transactions."""
    state: State = {}
    states = [state]
    for transaction in committed:
        before, state = state, dict(state)
        for name, value in transaction.writes.items():
            if transaction.reads.get(name) != before.get(name):
                wrong.append(f"{transaction.name} overwrote {name} unseen")
            if value is None:
                state.pop(name, None)
            else:
                state[name] = value
        if transaction.added:
            state["s"] = str(int(state.get("s", "0")) + transaction.added)
        wrong += _broken_rules(transaction.name, state)
        states.append(state)
    return states


def _wrong_reads(transaction: Transaction, seen: State) -> list[str]:
    return [
        f"{transaction.name} at {transaction.snapshot} read {name} = {value!r}, not "
        f"{seen.get(name)!r}"
        for name, value in transaction.reads.items()
        if seen.get(name) != value
    ]


def _broken_rules(after: str, state: State) -> list[str]:
    wrong = []
    total = sum(int(state.get(f"a{n}", BALANCE)) for n in range(ACCOUNTS))
    if total != ACCOUNTS * BALANCE:
        wrong.append(f"total is {total} after {after}")
    for n in range(PARENTS):
        orphans = [name for name in state if name.startswith(f"cp{n}/")]
        if orphans and f"p{n}" not in state:
            wrong.append(f"{orphans} without parent after {after}")
    return wrong
