"""The demo of a cluster: a node and a writer are killed, nothing is lost; and it can fail."""

from __future__ import annotations

from pathlib import Path

import pytest

import belvedere
from tools.hbase import demo
from tools.hbase.demo_spark import sum_orders_in_spark
from tools.hbase.demo_writer import write_orders


def test_the_demo_holds(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    demo.run_demo(f"{url}?lease_ms=6000", 30, with_spark=False)
    printed = capsys.readouterr().out
    assert "kill -9" in printed
    assert printed.count(": True") == len(demo.VIEWS)


def test_an_order_that_is_lost_is_found(url: str, tmp_path: Path) -> None:
    with belvedere.connect(url, autocommit=True) as shop:
        for statement in demo.SCHEMA:
            shop.execute(statement)
        write_orders(url, tmp_path / "notes", 0, 8)
        noted = demo.read_notes([tmp_path / "notes"])
        assert noted == set(range(8))
        demo.check_orders(shop, noted)
        assert (
            sum_orders_in_spark(url)
            == shop.execute("SELECT * FROM spent ORDER BY customer").fetchall()
        )
        shop.execute("DELETE FROM orders WHERE id = 5")
        with pytest.raises(demo.DemoFailed, match=r"lost: \[5\]"):
            demo.check_orders(shop, noted)
