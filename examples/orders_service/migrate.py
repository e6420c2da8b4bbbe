"""Migrations: numbered SQL files, each applied once and in order, and recorded in a table."""

from __future__ import annotations

from pathlib import Path

from orders_service.database import Connection

FOLDER = Path(__file__).parent / "migrations"
RECORDS = """CREATE TABLE IF NOT EXISTS schema_migrations (
    name text PRIMARY KEY,
    applied timestamptz NOT NULL DEFAULT now())"""


def apply_migrations(connection: Connection, until: str | None = None) -> list[str]:
    """Apply what is missing, up to the file of this name; the names of what was applied."""
    connection.execute(RECORDS)
    connection.commit()
    done = {name for (name,) in connection.execute("SELECT name FROM schema_migrations").fetchall()}
    connection.commit()
    applied = []
    for file in sorted(FOLDER.glob("*.sql")):
        if file.stem not in done and (until is None or file.stem <= until):
            _apply_file(connection, file)
            applied.append(file.stem)
    return applied


def defer_views(connection: Connection) -> None:
    """Take the two views that reports read off the write path; only Belvedere knows how."""
    for view in ("revenue_by_category", "product_rating"):
        connection.execute(
            f"ALTER MATERIALIZED VIEW {view} SET (maintenance = 'deferred', max_lag = '200 ms')"
        )
        connection.commit()


def _apply_file(connection: Connection, file: Path) -> None:
    """Each statement is a transaction of its own, and the record is the last one: a migration that
    was cut short is reported by the first statement that it repeats."""
    for statement in split_statements(file.read_text()):
        connection.execute(statement)
        connection.commit()
    connection.execute("INSERT INTO schema_migrations (name) VALUES ($1)", [file.stem])
    connection.commit()


def split_statements(script: str) -> list[str]:
    """The statements of a script in which every one ends a line with its semicolon."""
    return [part.strip() for part in script.split(";\n") if part.strip()]
