"""Tests of the row-atomic commit, run on a real HBase in place of the double: a sample.

`make hbase-test` runs all of them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hbase import slices
from tools.hbase.single import SingleHBase

ROOT = Path(__file__).resolve().parents[2]
LAW = "test_on_cells.py::test_views_equal_their_queries_after_every_transaction[5000]"


@pytest.mark.parametrize(
    ("tests", "at_least"),
    [("tests/txn/transaction", 70), (f"tests/properties/views/{LAW}", 1)],
    ids=["transactions", "law of views"],
)
def test_the_same_tests_pass_on_hbase(hbase: SingleHBase, tests: str, at_least: int) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-k", "cells", tests]
    environment = {**os.environ, slices.GATEWAYS: hbase.url}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) >= at_least
