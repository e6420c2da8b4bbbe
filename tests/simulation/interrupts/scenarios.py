"""What is interrupted: statements, each with what puts the store back for the next interrupt."""

from __future__ import annotations

from dataclasses import dataclass

ROWS = 40

SETUP = (
    "CREATE TABLE g (id int PRIMARY KEY, name text)",
    "CREATE TABLE t (id int PRIMARY KEY, g int REFERENCES g, v int, w text)",
    "CREATE TABLE probe (id int PRIMARY KEY)",
    "INSERT INTO g SELECT i, 'n' || i FROM generate_series(1, 5) AS s(i)",
    f"INSERT INTO t SELECT i, 1 + i % 5, i, 'w' || i FROM generate_series(1, {ROWS}) AS s(i)",
    "CREATE INDEX t_v ON t (v)",
    "CREATE MATERIALIZED VIEW now_view AS"
    " SELECT g.name, count(*) AS n, sum(t.v) AS s FROM t JOIN g ON t.g = g.id GROUP BY g.name",
    "CREATE MATERIALIZED VIEW later_view WITH (maintenance = 'deferred') AS"
    " SELECT g, max(v) AS top FROM t GROUP BY g",
)


@dataclass(frozen=True, slots=True)
class Scenario:
    """`run` is interrupted; `before` and `undo` are not, and hold whether it took effect or not."""

    name: str
    run: tuple[str, ...]
    undo: tuple[str, ...] = ()
    before: tuple[str, ...] = ()


SCENARIOS = (
    Scenario(
        "insert", ("INSERT INTO t VALUES (1000, 1, 1, 'x')",), ("DELETE FROM t WHERE id = 1000",)
    ),
    Scenario("update", ("UPDATE t SET v = v + 1 WHERE id = 7",)),
    Scenario(
        "insert_many",
        ("INSERT INTO t SELECT i, 1 + i % 5, i, 'x' FROM generate_series(1001, 1020) AS s(i)",),
        ("DELETE FROM t WHERE id > 1000",),
    ),
    Scenario(
        "delete",
        ("DELETE FROM t WHERE id = 9",),
        ("INSERT INTO t VALUES (9, 2, 9, 'x') ON CONFLICT DO NOTHING",),
    ),
    Scenario(
        "transaction",
        (
            "BEGIN",
            "INSERT INTO t VALUES (1001, 1, 1, 'x')",
            "UPDATE t SET v = 0 WHERE g = 3",
            "COMMIT",
        ),
        ("DELETE FROM t WHERE id > 1000",),
    ),
    Scenario(
        "read", ("SELECT g.name, count(*) FROM t JOIN g ON t.g = g.id GROUP BY 1 ORDER BY 2",)
    ),
    Scenario(
        "read_view", ("SELECT * FROM later_view",), before=("UPDATE t SET v = v + 1 WHERE id = 3",)
    ),
    Scenario(
        "create_view",
        (
            "CREATE MATERIALIZED VIEW made AS"
            " SELECT g, sum(v) AS s, count(DISTINCT w) AS d FROM t GROUP BY g",
        ),
        ("DROP MATERIALIZED VIEW IF EXISTS made",),
    ),
    Scenario(
        "create_deferred_view",
        (
            "CREATE MATERIALIZED VIEW made WITH (maintenance = 'deferred') AS"
            " SELECT g.id, t.w FROM g LEFT JOIN t ON t.g = g.id",
        ),
        ("DROP MATERIALIZED VIEW IF EXISTS made",),
    ),
    Scenario(
        "replace_view",
        (
            "CREATE OR REPLACE MATERIALIZED VIEW now_view AS SELECT g.name, count(*) AS n,"
            " sum(t.v) AS s FROM t JOIN g ON t.g = g.id WHERE t.v > 0 GROUP BY g.name",
        ),
    ),
    Scenario(
        "promote_view",
        ("ALTER MATERIALIZED VIEW later_view SET (maintenance = 'immediate')",),
        ("ALTER MATERIALIZED VIEW later_view SET (maintenance = 'deferred')",),
    ),
    Scenario(
        "refresh",
        ("REFRESH MATERIALIZED VIEW later_view",),
        before=("UPDATE t SET v = v + 1 WHERE id = 5",),
    ),
    Scenario(
        "drop_view",
        ("DROP MATERIALIZED VIEW made",),
        before=("CREATE MATERIALIZED VIEW IF NOT EXISTS made AS SELECT count(*) FROM t",),
    ),
    Scenario(
        "create_index", ("CREATE UNIQUE INDEX made ON t (w, v)",), ("DROP INDEX IF EXISTS made",)
    ),
    Scenario(
        "create_view_index",
        ("CREATE INDEX made ON now_view (n)",),
        ("DROP INDEX IF EXISTS made",),
    ),
    Scenario(
        "rewrite",
        ("ALTER TABLE r ALTER COLUMN v TYPE text",),
        before=(
            "DROP TABLE IF EXISTS r",
            "CREATE TABLE r (id int PRIMARY KEY, v int)",
            "INSERT INTO r SELECT i, i FROM generate_series(1, 20) AS s(i)",
        ),
    ),
    Scenario(
        "foreign_key",
        ("ALTER TABLE r ADD FOREIGN KEY (v) REFERENCES g",),
        before=(
            "DROP TABLE IF EXISTS r",
            "CREATE TABLE r (id int PRIMARY KEY, v int)",
            "INSERT INTO r SELECT i, 1 + i % 5 FROM generate_series(1, 20) AS s(i)",
        ),
    ),
    Scenario(
        "create_table_as", ("CREATE TABLE made AS SELECT * FROM t",), ("DROP TABLE IF EXISTS made",)
    ),
    Scenario(
        "truncate",
        ("TRUNCATE emptied",),
        before=(
            "CREATE TABLE IF NOT EXISTS emptied (id int PRIMARY KEY, v int)",
            "INSERT INTO emptied SELECT i, i FROM generate_series(1, 20) AS s(i)"
            " ON CONFLICT DO NOTHING",
        ),
    ),
    Scenario(
        "sequence",
        ("SELECT nextval('numbers')",),
        before=("CREATE SEQUENCE IF NOT EXISTS numbers",),
    ),
)
