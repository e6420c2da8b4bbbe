"""What must hold, while the faults go on and when they are over.

It shares no code with the commit protocol: it reads tables and views by SQL, and the writers'
notes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import belvedere
from tests.hbase.faults.writer import ACCOUNTS

BALANCE = 1000
VIEWS = {
    "by_source": "SELECT source, count(*) AS n FROM transfer GROUP BY source",
    "rich": "SELECT id, balance FROM account WHERE balance > 1000",
    "sent": "SELECT a.id, a.balance, t.id AS transfer FROM account a JOIN transfer t"
    " ON t.source = a.id",
    "later": "SELECT target, count(*) AS n FROM transfer GROUP BY target",
}


def make_tables(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE account (id INT PRIMARY KEY, balance INT NOT NULL)")
    con.execute("CREATE TABLE counter (id INT PRIMARY KEY, n BIGINT NOT NULL)")
    con.execute("CREATE TABLE transfer (id BIGINT PRIMARY KEY, source INT, target INT)")
    con.execute("INSERT INTO counter VALUES (0, 0)")
    for id_ in range(ACCOUNTS):
        con.execute("INSERT INTO account VALUES (?, ?)", (id_, BALANCE))
    for name, query in VIEWS.items():
        how = "deferred" if name == "later" else "immediate"
        con.execute(f"CREATE MATERIALIZED VIEW {name} WITH (maintenance = '{how}') AS {query}")


def check_moment(con: belvedere.Connection) -> None:
    """One snapshot: no transfer is half in it, and the views are of the same moment."""
    [(total, transfers, counter, seen)] = con.execute(
        "SELECT (SELECT sum(balance) FROM account), (SELECT count(*) FROM transfer),"
        " (SELECT n FROM counter WHERE id = 0), (SELECT coalesce(sum(n), 0) FROM by_source)"
    ).fetchall()
    assert total == ACCOUNTS * BALANCE, f"money was made or lost: {total}"
    assert counter == transfers == seen, f"half a transfer: {counter}, {transfers}, {seen}"


def check_end(con: belvedere.Connection, notes: Iterable[Path]) -> Counter[str]:
    """Everything, once nobody writes any more. Returns how many transfers ended how."""
    con.execute("SET freshness = 'latest'")
    check_moment(con)
    rows = con.execute("SELECT id, source, target FROM transfer").fetchall()
    done = {id_ for id_, _, _ in rows}
    told = read_notes(notes)
    assert not told["ack"] - done, f"lost: {sorted(told['ack'] - done)}"
    assert not told["no"] & done, f"happened all the same: {sorted(told['no'] & done)}"
    assert not done - told["try"], "transfers from nowhere"
    balances = Counter(dict.fromkeys(range(ACCOUNTS), BALANCE))
    balances.subtract(source for _, source, _ in rows)
    balances.update(target for _, _, target in rows)
    stored = dict(con.execute("SELECT id, balance FROM account").fetchall())
    assert stored == dict(balances), "a transfer counts twice, or not at all"
    for view in VIEWS:
        [result] = con.execute(f"VERIFY MATERIALIZED VIEW {view}").fetchall()
        assert result[-1] is True, f"view {view}: {result}"
    return Counter({kind: len(ids) for kind, ids in told.items()} | {"in the table": len(done)})


def read_notes(notes: Iterable[Path]) -> dict[str, set[int]]:
    told: dict[str, set[int]] = {kind: set() for kind in ("try", "ack", "no", "unknown")}
    for path in notes:
        for line in path.read_text().splitlines():
            kind, id_ = line.split()
            told[kind].add(int(id_))
    return told
