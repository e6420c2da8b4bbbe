"""A database with sessions, for tests of views through SQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from belvedere.catalog.model import View
from belvedere.config import Config, Durability
from belvedere.database import open_sql_database
from belvedere.session.session import Session

UNSYNCED = Config(durability=Durability.OFF)


class Store:
    """An open database; `session` makes one more session of it."""

    _rewrite = "off"

    def __init__(
        self, path: str | Path = ":memory:", config: Config = UNSYNCED, *, rewrite: bool = False
    ) -> None:
        """`rewrite`: views answer queries that do not name them. Otherwise a query over the tables
        of a view says what the view has to be."""
        self.db, self.shared = open_sql_database(path, config)
        if rewrite:
            self._rewrite = "on"
        self._first = self.session()

    def session(self) -> Session:
        session = Session(self.shared)
        session.settings.set("rewrite", self._rewrite)
        return session

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        """Run the statements; the rows of the last."""
        rows: list[tuple[Any, ...]] = []
        for statement in statements:
            rows = rows_of(self._first, statement)
        return rows

    def view(self, name: str) -> View:
        return self.db.catalog.require_relation(View, name)

    def verified(self) -> dict[str, bool]:
        """What VERIFY says of every view."""
        found = {}
        for view in self.db.catalog.views:
            quoted = view.name.replace('"', '""')
            (row,) = self.run(f'VERIFY MATERIALIZED VIEW "{quoted}"')
            found[view.name] = bool(row[-1])
        return found

    def verified_names(self) -> list[str]:
        return [name for name, right in self.verified().items() if right]

    def close(self) -> None:
        self.db.close()


def rows_of(session: Session, statement: str, freshness: str | None = None) -> list[Any]:
    result = session.execute(statement, freshness=freshness)
    result.convert_arrow_to_rows()
    return result.rows


@contextmanager
def opened(
    path: str | Path = ":memory:", config: Config = UNSYNCED, *, rewrite: bool = False
) -> Iterator[Store]:
    store = Store(path, config, rewrite=rewrite)
    try:
        yield store
    finally:
        store.close()
