"""Work that comes after the last row was read is canceled too, between any two of its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import belvedere
from belvedere.execution.python.operators import joins, merge_join
from belvedere.plan.functions.core import duckdb_udf
from belvedere.session.context.sequences_and_locks import SessionServices
from belvedere.session.copy import text_format
from belvedere.sql.rules.joins import merge_joins
from belvedere.txn.transaction import table_rows

ROWS = 1000


@pytest.fixture
def con() -> Iterator[belvedere.Connection]:
    with belvedere.connect(":memory:", autocommit=True) as opened:
        opened.execute("CREATE TABLE t (id int PRIMARY KEY, g int, w text)")
        opened.execute(f"INSERT INTO t SELECT n, 1, 'w' || n FROM generate_series(1, {ROWS}) g(n)")
        yield opened


def cancel_at_call(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch, owner: Any, name: str
) -> list[None]:
    """Cancel when this function is called; the list has its calls."""
    calls: list[None] = []
    called: Callable[..., Any] = getattr(owner, name)

    def cancel_and_call(*given: Any, **options: Any) -> Any:
        calls.append(None)
        con.cancel()
        return called(*given, **options)

    monkeypatch.setattr(owner, name, cancel_and_call)
    return calls


def require_canceled(run: Callable[[], object]) -> None:
    with pytest.raises(belvedere.OperationalError) as caught:
        run()
    assert caught.value.sqlstate == "57014"


@pytest.mark.parametrize(
    ("owner", "name", "text"),
    [
        (SessionServices, "lock_rows", "SELECT id FROM t ORDER BY w FOR UPDATE"),
        (table_rows, "insert_row", "CREATE TABLE made AS SELECT id, w FROM t ORDER BY w"),
        (text_format, "_format_text_field", "COPY (SELECT id FROM t ORDER BY w) TO '{path}'"),
    ],
)
def test_rows_that_were_sorted_are_handled_one_by_one(
    con: belvedere.Connection,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    owner: Any,
    name: str,
    text: str,
) -> None:
    con.execute("SET tier = direct")
    calls = cancel_at_call(con, monkeypatch, owner, name)
    require_canceled(lambda: con.execute(text.format(path=tmp_path / "out")))
    assert len(calls) == 1


FEW = "(SELECT * FROM t WHERE id <= 20)"  # read before the first row is joined


@pytest.mark.parametrize("kind", ["LEFT", "FULL"])
def test_merge_joins_are_canceled_between_rows(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    con.execute("SET tier = direct")
    monkeypatch.setattr(merge_joins, "ROWS_MIN", 1)
    calls = cancel_at_call(con, monkeypatch, merge_join.MergeGroups, "rows_with_key")
    require_canceled(
        lambda: con.execute(f"SELECT count(*) FROM {FEW} a {kind} JOIN {FEW} b ON a.id = b.id")
    )
    assert len(calls) == 1


@pytest.mark.parametrize("kind", ["INNER", "LEFT", "FULL"])
def test_hash_joins_are_canceled_between_rows(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    con.execute("SET tier = direct")
    calls: list[None] = []
    compile_key, made = joins._join_key, []

    def compile_counted_key(*given: Any) -> Any:
        bind = compile_key(*given)
        made.append(bind)
        if len(made) > 1:  # the right side's, which is read first
            return bind

        def bind_counted(run: Any) -> Any:
            key = bind(run)

            def cancel_and_key(row: Any) -> Any:
                calls.append(None)
                con.cancel()
                return key(row)

            return cancel_and_key

        return bind_counted

    monkeypatch.setattr(joins, "_join_key", compile_counted_key)
    require_canceled(
        lambda: con.execute(f"SELECT count(*) FROM {FEW} a {kind} JOIN {FEW} b ON a.g = b.g")
    )
    assert len(calls) == 1


def test_functions_in_python_notice_before_duckdb(
    con: belvedere.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DuckDB looks for an interrupt once for all partners of a vector, here a million."""
    con.execute("SET tier = duckdb")
    calls = cancel_at_call(con, monkeypatch, duckdb_udf, "limit_value_size")
    text = "SELECT count(*) FROM t a JOIN t b ON a.g = b.g WHERE a.w || b.w ~ '(x|w1)+y'"
    require_canceled(lambda: con.execute(text))
    assert 0 < len(calls) < 10
    monkeypatch.undo()
    assert con.execute(text).fetchall() == [(0,)]


def test_create_table_as_stays_within_the_memory_limit() -> None:
    with belvedere.connect(":memory:", autocommit=True, memory_limit_mb=1) as con:
        with pytest.raises(belvedere.OperationalError) as caught:
            con.execute("CREATE TABLE made AS SELECT n FROM generate_series(1, 30000) g(n)")
        assert caught.value.sqlstate == "53200"
        con.execute("CREATE TABLE made AS SELECT n FROM generate_series(1, 300) g(n)")
