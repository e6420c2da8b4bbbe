"""Sequences go on where they were after a clean close."""

from __future__ import annotations

from pathlib import Path

import belvedere


def test_sequences_go_on_where_they_were_after_a_clean_close(tmp_path: Path) -> None:
    path, ids = str(tmp_path / "store"), []
    with belvedere.connect(path, autocommit=True) as con:
        con.execute("CREATE TABLE t (id serial PRIMARY KEY, v int)")
        con.execute("CREATE SEQUENCE down INCREMENT -2 MAXVALUE 999 START 100 CACHE 50")
    for _ in range(3):
        with belvedere.connect(path, autocommit=True) as con:
            for _ in range(2):
                ids += con.execute("INSERT INTO t (v) VALUES (1) RETURNING id").fetchone()
            assert con.execute("SELECT nextval('down')").fetchone() == (100 - len(ids) + 2,)
    assert ids == [1, 2, 3, 4, 5, 6]
    with belvedere.connect(path, autocommit=True) as con:
        con.execute("SELECT setval('down', 40)")
    with belvedere.connect(path, autocommit=True) as con:
        assert con.execute("SELECT nextval('down')").fetchone() == (38,)
