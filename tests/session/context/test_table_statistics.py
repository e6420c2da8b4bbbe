"""Statistics: sampled by each process for itself, made anew when much has happened, by ANALYZE in
full; the order of joins and the tier follow them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import belvedere
from belvedere.session.context import table_statistics


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as made:
        yield made


def estimate(con: belvedere.Connection, query: str) -> int:
    """The rows that EXPLAIN expects of the whole."""
    first = con.execute(f"EXPLAIN {query}").fetchall()[0][0]
    return int(first.rsplit("(rows=", 1)[1].split(")")[0])


def fill(con: belvedere.Connection, rows: int = 2000) -> None:
    con.execute("CREATE TABLE t (id int PRIMARY KEY, hot int, few text, d date)")
    con.execute(
        "INSERT INTO t SELECT i, CASE WHEN i % 10 < 9 THEN 0 ELSE i END, 'k' || i % 4, "
        "CASE WHEN i % 5 > 0 THEN DATE '2024-01-01' + i % 365 END "
        f"FROM generate_series(1, {rows}) i"
    )


def test_estimates_follow_how_values_are_spread(con: belvedere.Connection) -> None:
    fill(con)
    assert estimate(con, "SELECT id FROM t WHERE hot = 0") == pytest.approx(1800, rel=0.02)
    assert estimate(con, "SELECT id FROM t WHERE hot = 19") < 10
    assert estimate(con, "SELECT id FROM t WHERE few = 'k1'") == pytest.approx(500, rel=0.02)
    assert estimate(con, "SELECT id FROM t WHERE few IN ('k1', 'k2')") == pytest.approx(
        1000, rel=0.1
    )
    assert estimate(con, "SELECT id FROM t WHERE d IS NULL") == pytest.approx(400, rel=0.02)
    half = estimate(con, "SELECT id FROM t WHERE d < DATE '2024-07-01'")
    assert half == pytest.approx(800, rel=0.1)
    assert estimate(con, "SELECT few, count(*) FROM t GROUP BY few") == 4
    assert estimate(con, "SELECT id FROM t WHERE id = 5") == 1


def test_a_large_table_is_sampled_in_places(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_statistics, "COUNTED_MAX", 500)
    con.execute("CREATE TABLE big (id int PRIMARY KEY, third int)")
    con.execute("INSERT INTO big SELECT i, i / 4000 FROM generate_series(0, 11999) i")
    [(rows,)] = con.execute(
        "SELECT rows_estimate FROM belvedere.tables WHERE name = 'big'"
    ).fetchall()
    assert 6_000 < rows < 30_000
    [(distinct, common)] = con.execute(
        "SELECT distinct_estimate, common FROM belvedere.statistics "
        "WHERE table_name = 'big' AND column_name = 'third'"
    ).fetchall()
    assert distinct == 3, common
    con.execute("ANALYZE big")
    [(rows,)] = con.execute(
        "SELECT rows_estimate FROM belvedere.tables WHERE name = 'big'"
    ).fetchall()
    assert rows == 12_000


@pytest.mark.parametrize("far", [1 << 20, 1 << 30])
def test_a_few_keys_far_from_the_others_do_not_count(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch, far: int
) -> None:
    monkeypatch.setattr(table_statistics, "COUNTED_MAX", 500)
    con.execute("CREATE TABLE far (id int PRIMARY KEY, v int)")
    con.execute("INSERT INTO far SELECT i, i % 10 FROM generate_series(0, 7999) i")
    con.execute(f"INSERT INTO far SELECT {far} + i, 99 FROM generate_series(0, 9) i")
    assert 4_000 < estimate(con, "SELECT id FROM far") < 16_000
    assert estimate(con, "SELECT v FROM far WHERE v = 99") < 300
    joined = estimate(con, "SELECT a.v FROM far a JOIN far b ON a.id = b.id")
    assert joined < 32_000


@pytest.mark.parametrize("analyzed", [False, True])
def test_values_that_repeat_with_the_period_of_the_sample_are_seen(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch, analyzed: bool
) -> None:
    """With every n-th row taken, one value of a column that is the key modulo n would be all."""
    monkeypatch.setattr(table_statistics, "SAMPLED_MAX", 300)
    monkeypatch.setattr(table_statistics, "ANALYZED_MAX", 300)
    con.execute("CREATE TABLE p (id int PRIMARY KEY, v int)")
    con.execute("INSERT INTO p SELECT i, i % 8 FROM generate_series(0, 2335) i")
    if analyzed:
        con.execute("ANALYZE p")
    assert estimate(con, "SELECT v, count(*) FROM p GROUP BY v") == 8
    share = estimate(con, "SELECT id FROM p WHERE v = 3")
    assert share == pytest.approx(292, rel=0.5)


def test_it_is_made_anew_when_much_has_happened(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE n (id int PRIMARY KEY, v int)")
    assert estimate(con, "SELECT * FROM n") == 1
    for number in range(60):
        con.execute("INSERT INTO n VALUES (?, 1)", (number,))
    assert estimate(con, "SELECT v FROM n") > 40


def test_analyze_counts_at_once(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE n (id int PRIMARY KEY, v int)")
    assert estimate(con, "SELECT * FROM n") == 1
    con.execute("INSERT INTO n SELECT i, i % 3 FROM generate_series(1, 300) i")
    con.execute("ANALYZE n")
    assert estimate(con, "SELECT * FROM n") == 300
    con.execute("ANALYZE")
    con.execute("VACUUM ANALYZE n")
    with pytest.raises(belvedere.ProgrammingError):
        con.execute("ANALYZE nowhere")


def test_joins_begin_where_skew_leaves_few_rows(con: belvedere.Connection) -> None:
    """Each join of `fact` has as many keys as the other, but one of them is of a hot value."""
    con.execute("CREATE TABLE fact (id int PRIMARY KEY, a int, b int)")
    con.execute(
        "INSERT INTO fact SELECT i, i % 200, CASE WHEN i % 4 < 3 THEN 7 ELSE i % 200 END "
        "FROM generate_series(1, 3000) i"
    )
    for name in ("da", "db"):
        con.execute(f"CREATE TABLE {name} (id int PRIMARY KEY, k int, v int)")
        hot = "7" if name == "db" else "i % 200"
        con.execute(
            f"INSERT INTO {name} SELECT i, CASE WHEN i % 2 = 0 THEN {hot} ELSE i % 200 END, i "
            "FROM generate_series(1, 400) i"
        )
    con.execute("ANALYZE")
    rows = {
        name: estimate(con, f"SELECT 1 FROM fact f JOIN {name} d ON f.{slot} = d.k")
        for name, slot in (("da", "a"), ("db", "b"))
    }
    actual = {
        name: con.execute(f"SELECT count(*) FROM fact f JOIN {name} d ON f.{slot} = d.k").fetchone()
        for name, slot in (("da", "a"), ("db", "b"))
    }
    for name, (count,) in actual.items():
        assert rows[name] == pytest.approx(count, rel=0.3)
    plan = "\n".join(
        line
        for (line,) in con.execute(
            "EXPLAIN SELECT 1 FROM db, fact, da WHERE fact.b = db.k AND fact.a = da.k"
        ).fetchall()
    )
    deepest = max(
        (line for line in plan.splitlines() if "Scan" in line),
        key=lambda line: len(line) - len(line.lstrip()),
    )
    assert "Scan db" not in deepest, plan


def test_a_key_that_begins_with_few_values_is_counted_right(con: belvedere.Connection) -> None:
    con.execute("CREATE TABLE lines (number int, parent int, n int, PRIMARY KEY (number, parent))")
    con.execute(
        "INSERT INTO lines SELECT a, b, b % 7 FROM generate_series(1, 5) a, "
        "generate_series(1, 8000) b"
    )
    assert estimate(con, "SELECT * FROM lines") == pytest.approx(40_000, rel=0.2)
    assert estimate(con, "SELECT * FROM lines WHERE n = 3") == pytest.approx(40_000 / 7, rel=0.3)


def test_values_that_lie_side_by_side_are_not_few(con: belvedere.Connection) -> None:
    """A sample of runs has all four lines of an order, and few of the orders."""
    for name, key in (("by_order", "o, line"), ("by_line", "line, o")):
        con.execute(f"CREATE TABLE {name} (o int, line int, PRIMARY KEY ({key}))")
        con.execute(f"INSERT INTO {name} SELECT i / 4, i % 4 FROM generate_series(0, 39999) g(i)")
        assert estimate(con, f"SELECT line, count(*) FROM {name} GROUP BY line") == 4
    orders = estimate(con, "SELECT o, count(*) FROM by_order GROUP BY o")
    assert orders == pytest.approx(10_000, rel=0.3)
