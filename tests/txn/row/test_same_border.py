"""The tests of transactions and constraints, unchanged, on the row-atomic commit."""

from __future__ import annotations

from tests.txn.test_constraints import *  # noqa: F403
from tests.txn.test_transaction import *  # noqa: F403
