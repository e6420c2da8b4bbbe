"""Interrupts at lines of statements, and what is left of the store afterwards.

    python -m tests.simulation.interrupts --count 5000      5,000 of them, over all scenarios
    python -m tests.simulation.interrupts --only insert --count 0      every line of one

After each: a write succeeds, nothing is building, nothing is locked, VERIFY is ok.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import belvedere
from belvedere.database import Database
from belvedere.interfaces.client.connection import Connection
from belvedere.session.session import Session
from belvedere.views.state.build_state import list_unfinished_builds
from tests.simulation.interrupts.injector import LineInjector, await_delivery, interrupt_by_signal
from tests.simulation.interrupts.scenarios import SCENARIOS, SETUP, Scenario
from tests.txn.deadline import until

KINDS = ("signal", "cancel")
STORES = ("memory", "off", "full")


class InterruptedStore:
    """An open store with what the scenarios need."""

    def __init__(self, connection: Connection) -> None:
        session = connection.session
        assert isinstance(session, Session)
        assert isinstance(session.host, Database)
        self.connection, self.session, self.host = connection, session, session.host
        self._probes = 0
        for statement in SETUP:
            connection.execute(statement)
        self.require_working()

    def count_lines(self, scenario: Scenario) -> int:
        """The lines of a scenario, once its statements are planned."""
        for _ in range(3):
            injector = LineInjector(0, lambda: None)
            self.run_all(scenario.before)
            injector.run(lambda: self.run_all(scenario.run))
            self.run_all(scenario.undo)
        return injector.lines

    def interrupt_line(self, scenario: Scenario, at: int, kind: str) -> str:
        """Interrupt the scenario at this line; what it ended with, and where that was."""
        actions: dict[str, Callable[[], None]] = {
            "signal": interrupt_by_signal,
            "cancel": self.connection.cancel,
        }
        injector = LineInjector(at, actions[kind])
        self.run_all(scenario.before)
        ended = "done"
        try:
            injector.run(lambda: self.run_all(scenario.run))
        except KeyboardInterrupt:
            ended = "interrupted"
        except belvedere.OperationalError as error:
            if error.sqlstate != "57014":
                raise
            ended = "canceled"
        await_delivery()
        self.connection.rollback()
        self.require_working()
        self.run_all(scenario.undo)
        return f"{ended} at {injector.place}"

    def run_all(self, statements: tuple[str, ...]) -> None:
        for statement in statements:
            self.connection.execute(statement)

    def require_working(self) -> None:
        con, host = self.connection, self.host
        assert self.session.transactions.open is None
        assert not self.session.interrupt._hooks
        assert not list_unfinished_builds(host.catalog)
        assert host.locks.list_locks() == []
        until(lambda: host.visibility.open_count == 0)  # the worker may have one for a moment
        for _ in range(2):  # planned, then by the single-row fast path
            self._probes += 1
            con.execute("INSERT INTO probe VALUES (?)", (self._probes,))
        con.execute("UPDATE t SET v = v WHERE id IN (1, 2)")
        for view in host.catalog.views:
            if view.schema == "public" and not view.name.startswith("_"):
                verified = con.execute(f'VERIFY MATERIALIZED VIEW "{view.name}"').fetchone()
                assert verified is not None
                assert verified[-1] is True, verified


def open_store(kind: str, directory: Path) -> Connection:
    if kind == "memory":
        return belvedere.connect(":memory:", autocommit=True)
    return belvedere.connect(str(directory / kind), autocommit=True, durability=kind)


def interrupt_scenarios(
    scenarios: tuple[Scenario, ...], store: str, count: int, seed: int, *, verbose: bool = False
) -> int:
    """Interrupt the scenarios so often, at lines chosen by the seed; 0: at every line. Returns how
    many interrupts went off."""
    chance, told = random.Random(seed), 0
    with (
        tempfile.TemporaryDirectory() as directory,
        open_store(store, Path(directory)) as con,
    ):
        opened = InterruptedStore(con)
        for number, scenario in enumerate(scenarios):
            lines = opened.count_lines(scenario)
            share = count // len(scenarios) + (number < count % len(scenarios))
            chosen = range(1, lines + 1)
            if count:
                chosen = sorted(chance.choices(chosen, k=share))  # type: ignore[assignment]
            for at in chosen:
                kind = chance.choice(KINDS)
                try:
                    ended = opened.interrupt_line(scenario, at, kind)
                except BaseException:
                    print(f"{store} {scenario.name}: {kind} at line {at} of {lines}", flush=True)
                    raise
                told += not ended.startswith("done")
                if verbose:
                    print(f"{store} {scenario.name} {at}/{lines} {kind}: {ended}", flush=True)
            print(f"{store} {scenario.name}: {len(chosen)} of {lines} lines", flush=True)
    return told


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests.simulation.interrupts")
    parser.add_argument("--count", type=int, default=300, help="0: every line")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="one scenario")
    parser.add_argument("--store", choices=STORES)
    parser.add_argument("--verbose", action="store_true")
    options = parser.parse_args()
    chosen = tuple(one for one in SCENARIOS if options.only in (None, one.name))
    stores = (options.store,) if options.store else STORES
    for number, store in enumerate(stores):
        share = options.count // len(stores) + (number < options.count % len(stores))
        if options.count and not share:
            continue
        interrupt_scenarios(chosen, store, share, options.seed + number, verbose=options.verbose)
    print("every store works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
