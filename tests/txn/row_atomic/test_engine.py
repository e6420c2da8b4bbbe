"""The row-atomic engine: what its node does about dead ones, beside its heartbeat."""

from __future__ import annotations

import threading

from belvedere.errors import Unavailable
from belvedere.txn.row_atomic.engine import Chores
from tests.txn.row_atomic.nodes import commits, open_node


def test_one_run_of_the_chores_at_a_time_and_none_after_their_end() -> None:
    with open_node() as node:
        runs: list[threading.Thread] = []
        done = threading.Event()

        def tend() -> None:
            runs.append(threading.current_thread())
            assert done.wait(60)

        chores = Chores(commits(node), tend)
        chores.start_run()
        chores.start_run()
        done.set()
        chores.end_runs()
        assert runs == [chores.thread]
        assert not runs[0].is_alive()
        chores.start_run()
        assert chores.thread is runs[0]


def test_a_run_that_fails_is_counted_and_the_next_one_comes() -> None:
    with open_node() as node:

        def tend() -> None:
            raise Unavailable("the store does not answer")

        chores = Chores(commits(node), tend)
        for count in (1, 2):
            chores.start_run()
            assert chores.thread is not None
            chores.thread.join(60)
            assert commits(node).node.counts["adoptions failed"] == count
        chores.end_runs()
