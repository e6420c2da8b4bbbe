"""The named anomalies, acted out by two or three sessions, at every isolation level.

A case is a script. A step that a lock holds up is marked and done when the lock is free. What
happened is printed, and compared with hermitage.txt, where each case says what must not happen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from belvedere.config import Config
from belvedere.database import Database
from belvedere.errors import Error, Retry, Unavailable
from belvedere.txn.transaction import table_rows
from belvedere.txn.transaction.transaction import Transaction
from tests.simulation.history.events import LEVELS
from tests.simulation.history.schema import TABLES
from tests.simulation.history.workload import ISOLATION

CASES: dict[str, tuple[str, str]] = {
    "dirty write (G0)": (
        "the rows of the two writers are never mixed",
        "1 set 1 11; 2 set 1 12; 1 set 2 21; 1 commit; 2 set 2 22; 2 commit; 3 all",
    ),
    "aborted read (G1a)": (
        "2 never sees 101",
        "1 set 1 101; 2 get 1; 1 rollback; 2 get 1; 2 commit",
    ),
    "intermediate read (G1b)": (
        "2 never sees 101",
        "1 set 1 101; 2 get 1; 1 set 1 11; 1 commit; 2 get 1; 2 commit",
    ),
    "circular information flow (G1c)": (
        "neither sees the other's row",
        "1 set 1 11; 2 set 2 22; 1 get 2; 2 get 1; 1 commit; 2 commit",
    ),
    "observed transaction vanishes (OTV)": (
        "3 does not see 11 after it has seen 12, nor half of 2",
        "1 set 1 11; 1 set 2 19; 2 set 1 12; 1 commit; 3 get 1; 2 set 2 18; 3 get 2; 2 commit; "
        "3 get 2; 3 get 1; 3 commit",
    ),
    "predicate many preceders (PMP)": (
        "from repeatable read on, the second look finds what the first found",
        "1 over 25; 2 add 3 30; 2 commit; 1 over 25; 1 commit",
    ),
    "lost update (P4)": (
        "from repeatable read on, one of two that read and then write gives way",
        "1 get 1; 2 get 1; 1 set 1 11; 2 set 1 12; 1 commit; 2 commit; 3 all",
    ),
    "read skew (G-single)": (
        "from repeatable read on, 1 sees both old rows",
        "1 get 1; 2 get 1; 2 get 2; 2 set 1 12; 2 set 2 18; 2 commit; 1 get 2; 1 commit",
    ),
    "read skew by predicate": (
        "from repeatable read on, 1 does not see 12",
        "1 over 15; 2 set 1 12; 2 set 2 18; 2 commit; 1 over 11; 1 commit",
    ),
    "read skew by a write": (
        "from repeatable read on, 1 may not write the row that 2 changed",
        "1 get 1; 2 set 1 12; 2 set 2 18; 2 commit; 1 set 2 99; 1 commit; 3 all",
    ),
    "write skew (G2-item)": (
        "serializable: one gives way",
        "1 get 1; 1 get 2; 2 get 1; 2 get 2; 1 set 1 11; 2 set 2 21; 1 commit; 2 commit; 3 all",
    ),
    "write skew by predicate (G2)": (
        "serializable: one gives way",
        "1 over 25; 2 over 25; 1 add 3 30; 2 add 4 42; 1 commit; 2 commit; 3 all",
    ),
    "two edges of one reader (Fekete)": (
        "serializable: 1 writes what it read before 2, and 3 has seen 2 without 1: one gives way",
        "1 get 1; 1 get 2; 2 get 2; 2 set 2 25; 2 commit; 3 get 1; 3 get 2; 3 commit; 1 set 1 0; "
        "1 commit; 4 all",
    ),
}


@dataclass(slots=True)
class Stage:
    """One case at one level."""

    database: Database
    level: str
    open_now: dict[str, Transaction] = field(default_factory=dict)
    waiting: list[tuple[str, list[str]]] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)

    def act(self, script: str) -> list[str]:
        for text in script.split(";"):
            who, *what = text.split()
            if any(name == who for name, _ in self.waiting):
                self.waiting.append((who, what))
            else:
                self._step(who, what)
            self._go_on()
        for txn in self.open_now.values():
            txn.rollback()
        return self.lines

    def _go_on(self) -> None:
        """Try what was held up, in order, until nothing moves."""
        waiting, self.waiting = self.waiting, []
        for who, what in waiting:
            if any(name == who for name, _ in self.waiting):
                self.waiting.append((who, what))
            else:
                self._step(who, what, again=True)

    def _step(self, who: str, what: list[str], again: bool = False) -> None:
        if who not in self.open_now:
            self.open_now[who] = self.database.begin(ISOLATION[self.level])
        txn = self.open_now[who]
        try:
            txn.begin_statement()
            answer = VERBS[what[0]](self.database, txn, *map(int, what[1:]))
        except Unavailable:
            self.waiting.append((who, what))
            answer = "waits"
            if again:
                return
        except Retry:
            txn.rollback()
            answer = "gives way"
        except Error as error:
            answer = "the transaction is over" if txn.ended else error.message
        self.lines.append(f"{who} {' '.join(what)}: {answer}")


def _put(database: Database, txn: Transaction, id_: int, value: int) -> str:
    table = database.get_compiled_table("counter")
    old = txn.get(table.key.encode_first(id_))
    assert old is not None
    table_rows.update_row(txn, table, table.decode(old), (id_, value))
    return "done"


def _add(database: Database, txn: Transaction, id_: int, value: int) -> str:
    table_rows.insert_row(txn, database.get_compiled_table("counter"), (id_, value))
    return "done"


def _get(database: Database, txn: Transaction, id_: int) -> str:
    table = database.get_compiled_table("counter")
    value = txn.get(table.key.encode_first(id_))
    return "none" if value is None else str(table.decode(value)[1])


def _all(database: Database, txn: Transaction, floor: int = 0) -> str:
    table = database.get_compiled_table("counter")
    found = [table.decode(v) for batch in txn.scan(table.start, table.end) for _, v in batch]
    return " ".join(f"{id_}={value}" for id_, value in found if value >= floor) or "nothing"


def _commit(database: Database, txn: Transaction) -> str:
    txn.commit()
    return "done"


def _rollback(database: Database, txn: Transaction) -> str:
    txn.rollback()
    return "done"


VERBS: dict[str, Callable[..., str]] = {
    "set": _put,
    "add": _add,
    "get": _get,
    "all": _all,
    "over": _all,
    "commit": _commit,
    "rollback": _rollback,
}


def play(script: str, level: str) -> list[str]:
    with Database.open(":memory:", Config(lock_wait_ms_max=0)) as database:
        counter = next(table for table in TABLES if table.name == "counter")
        database.change_schema(lambda edit: edit.create_table(counter))
        table = database.get_compiled_table("counter")
        for row in ((1, 10), (2, 20)):
            database.run_transaction(lambda txn, row=row: table_rows.insert_row(txn, table, row))
        return Stage(database, level).act(script)


def report() -> str:
    """All cases at all levels, as text."""
    parts = []
    for name, (rule, script) in CASES.items():
        parts.append(f"# {name}: {rule}")
        for level in LEVELS:
            parts += [f"-- {level}", *play(script, level)]
        parts.append("")
    return "\n".join(parts)
