"""What must hold, while the faults go on and when they are over.

It shares no code with the commit protocol: it reads tables and views by SQL, and the writers'
notes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import belvedere
from tests.hbase.faults.writer import ACCOUNTS, LINES

BALANCE = 1000
TABLES = (
    "account (id INT PRIMARY KEY, balance INT NOT NULL)",
    "counter (id INT PRIMARY KEY, n BIGINT NOT NULL)",
    "transfer (id BIGINT PRIMARY KEY, source INT, target INT, turn BIGINT)",
    "purchase (id BIGINT PRIMARY KEY, customer INT)",
    "line (purchase BIGINT REFERENCES purchase, number INT, product INT,"
    " PRIMARY KEY (purchase, number))",
)
VIEWS = {
    "by_source": "SELECT source, count(*) AS n FROM transfer GROUP BY source",
    "rich": "SELECT id, balance FROM account WHERE balance > 1000",
    "sent": "SELECT a.id, a.balance, t.id AS transfer FROM account a JOIN transfer t"
    " ON t.source = a.id",
    "bought": "SELECT p.customer, l.product, count(*) AS n FROM purchase p JOIN line l"
    " ON l.purchase = p.id GROUP BY p.customer, l.product",
    "later": "SELECT target, count(*) AS n FROM transfer GROUP BY target",
}


class Notes(NamedTuple):
    """What the writers noted: ids by kind, and when each transaction was begun and acknowledged."""

    told: dict[str, set[int]]
    begun: dict[int, float]
    acknowledged: dict[int, float]


def make_tables(con: belvedere.Connection) -> None:
    for table in TABLES:
        con.execute(f"CREATE TABLE {table}")
    con.execute("INSERT INTO counter VALUES (0, 0)")
    for id_ in range(ACCOUNTS):
        con.execute("INSERT INTO account VALUES (?, ?)", (id_, BALANCE))
    for name, query in VIEWS.items():
        how = "deferred" if name == "later" else "immediate"
        con.execute(f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = '{how}') AS {query}")


def check_moment(con: belvedere.Connection) -> None:
    """One snapshot: no transaction is half in it, and the views are of the same moment."""
    [(total, transfers, counter, seen, orders, lines, bought)] = con.execute(
        "SELECT (SELECT sum(balance) FROM account), (SELECT count(*) FROM transfer),"
        " (SELECT n FROM counter WHERE id = 0), (SELECT coalesce(sum(n), 0) FROM by_source),"
        " (SELECT count(*) FROM purchase), (SELECT count(*) FROM line),"
        " (SELECT coalesce(sum(n), 0) FROM bought)"
    ).fetchall()
    assert total == ACCOUNTS * BALANCE, f"money was made or lost: {total}"
    assert counter == transfers == seen, f"half a transfer: {counter}, {transfers}, {seen}"
    assert orders * LINES == lines == bought, f"half an order: {orders}, {lines}, {bought}"


def check_end(con: belvedere.Connection, paths: Iterable[Path]) -> Counter[str]:
    """Everything, once nobody writes any more. Returns how many transactions ended how."""
    con.execute("SET freshness = 'latest'")
    check_moment(con)
    rows = con.execute("SELECT id, source, target, turn FROM transfer").fetchall()
    done = {id_ for id_, *_ in rows} | {id_ for (id_,) in con.execute("SELECT id FROM purchase")}
    notes = read_notes(paths)
    told = notes.told
    assert not told["ack"] - done, f"lost: {sorted(told['ack'] - done)}"
    assert not told["no"] & done, f"happened all the same: {sorted(told['no'] & done)}"
    assert not done - told["try"], "transactions from nowhere"
    balances = Counter(dict.fromkeys(range(ACCOUNTS), BALANCE))
    balances.subtract(source for _, source, _, _ in rows)
    balances.update(target for _, _, target, _ in rows)
    stored = dict(con.execute("SELECT id, balance FROM account").fetchall())
    assert stored == dict(balances), "a transfer counts twice, or not at all"
    check_order({id_: turn for id_, _, _, turn in rows}, notes)
    for view in VIEWS:
        [result] = con.execute(f"VERIFY MATERIALIZED VIEW {view}").fetchall()
        assert result[-1] is True, f"view {view}: {result}"
    return Counter({kind: len(ids) for kind, ids in told.items()} | {"in the tables": len(done)})


def check_order(turns: dict[int, int], notes: Notes) -> None:
    """Transfers happened one after the other, and none that began after another was acknowledged
    came before it."""
    assert sorted(turns.values()) == list(range(1, len(turns) + 1)), "a turn twice, or left out"
    acknowledged = float("inf")
    for id_ in sorted(turns, key=turns.__getitem__, reverse=True):
        assert notes.begun[id_] <= acknowledged, f"reordered: {id_} came before an earlier one"
        acknowledged = min(acknowledged, notes.acknowledged.get(id_, acknowledged))


def read_notes(paths: Iterable[Path]) -> Notes:
    notes = Notes({kind: set() for kind in ("try", "ack", "no", "unknown")}, {}, {})
    for path in paths:
        for line in path.read_text().splitlines():
            kind, id_, time = line.split()
            notes.told[kind].add(int(id_))
            if kind == "try":
                notes.begun[int(id_)] = float(time)
            elif kind == "ack":
                notes.acknowledged[int(id_)] = float(time)
    return notes
