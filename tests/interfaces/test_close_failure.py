"""A store that cannot be closed in order says so by an exception of PEP 249."""

from __future__ import annotations

from pathlib import Path

import pytest

import belvedere
from belvedere.errors import Unavailable
from belvedere.txn.batch_atomic.anchor import Anchor


def test_close_on_a_full_disk_raises_an_operational_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_write(*_: object, **__: object) -> None:
        raise Unavailable("disk is full", sqlstate="53100")

    con = belvedere.connect(str(tmp_path / "shop.db"), autocommit=True)
    con.execute("CREATE TABLE t (id int PRIMARY KEY)")
    with monkeypatch.context() as full:
        full.setattr(Anchor, "write", refuse_write)
        with pytest.raises(belvedere.OperationalError) as failed:
            con.close()
    assert failed.value.sqlstate == "53100"
    with belvedere.connect(str(tmp_path / "shop.db")) as again:
        assert again.execute("SELECT * FROM t").fetchall() == []
