"""The bytecodes that a statement executes: what it costs, without a clock.

The same statement on the same data executes the same bytecodes, so that a bound on how they grow
holds on a busy machine too. Work inside C functions is not counted.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

from belvedere.benchmarks.statements.kinds import UPDATE_ONE, StatementKind
from belvedere.benchmarks.statements.peers import StatementPeer

GROWTH_MAX = 1.3
"""How much more the 100th statement of a transaction may cost than the first, and a row among
1,000 than one among 10."""


def count_bytecodes(action: Callable[[], object]) -> int:
    """How many bytecodes Python executes in `action`, without those of a garbage collection that
    happens to fall into it."""
    counted = 0

    def trace_frame(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal counted
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        counted += event == "opcode"
        return trace_frame

    before, collects = sys.gettrace(), gc.isenabled()
    gc.disable()
    sys.settrace(trace_frame)
    try:
        action()
    finally:
        sys.settrace(before)
        if collects:
            gc.enable()
    return counted


def run_preceding(peer: StatementPeer, kind: StatementKind, start: int, count: int) -> None:
    """Statements before the measured one: updates of one row and statements of its own kind, in
    turn, about other rows."""
    rows = kind.sizes[0]
    for number in range(count):
        if number % 2 == 0:
            peer.execute(UPDATE_ONE.format(kind.table), (number * 37,))
        else:
            step = -(number + 1) if kind.deletes else 1000 + number
            run_statement(peer, kind, rows, start + step * rows)


def run_statement(peer: StatementPeer, kind: StatementKind, rows: int, start: int) -> None:
    done = peer.execute(kind.text(rows), kind.values(rows, start))
    if kind.reads:
        done.fetchall()


def count_in_transaction(
    peer: StatementPeer, kind: StatementKind, rows: int, start: int, preceding: int
) -> int:
    """Bytecodes of a statement after others in one transaction, which is rolled back."""
    peer.execute("BEGIN")
    run_preceding(peer, kind, start, preceding)
    counted = count_bytecodes(lambda: run_statement(peer, kind, rows, start))
    peer.execute("ROLLBACK")
    return counted
