"""Status of a store for the pipeline: position of the log, of its views and of stream writers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from belvedere.pipeline.store.client import Store, StoreIdentity

_VIEWS = """
    SELECT schema || '.' || name AS view, state, maintenance, position, backlog, error
    FROM belvedere.views ORDER BY 1
"""
_KNOWN = """
    SELECT count(*) AS n FROM information_schema.tables
    WHERE table_schema = 'belvedere_pipeline' AND table_name = 'written'
"""
_WRITERS = "SELECT writer, batch, rows FROM belvedere_pipeline.written ORDER BY 1"


@dataclass(frozen=True, slots=True)
class PipelineStatus:
    """Status of a store; `views` and `writers` are rows of the system tables."""

    identity: StoreIdentity
    views: list[dict[str, Any]]
    writers: list[dict[str, Any]]


def read_store_status(store: Store) -> PipelineStatus:
    writers = (
        _query_rows_as_dicts(store, _WRITERS) if _query_rows_as_dicts(store, _KNOWN)[0]["n"] else []
    )
    return PipelineStatus(store.identity(), _query_rows_as_dicts(store, _VIEWS), writers)


def _query_rows_as_dicts(store: Store, sql: str) -> list[dict[str, Any]]:
    table = store.execute(sql).rows
    assert table is not None
    found: list[dict[str, Any]] = table.to_pylist()
    return found
