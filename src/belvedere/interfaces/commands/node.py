"""The command `belvedere node`: a process that tends a database on HBase, until it is stopped.

Every process that has the database open maintains deferred views, sweeps up after dead ones and
continues their backfills; a node does it while no application runs. Beyond that it folds the
sums of views, removes old versions of rows and trims the log. Any number of nodes may run at once.
"""

from __future__ import annotations

import signal
import sys
from dataclasses import dataclass
from typing import Annotated

import typer

from belvedere.database import Database
from belvedere.errors import Error, Unavailable
from belvedere.interfaces.stores import OpenOptions, acquire_store, release_store
from belvedere.kv.hbase.url import is_hbase_url

LOOK_SECONDS = 1.0


@dataclass(slots=True)
class NodeUpkeep:
    """What a node does now and then, told by positions. `keep`: so many of the newest positions
    stay readable as snapshots; the work is done when twice as many are."""

    database: Database
    keep: int
    done_through: int = 0

    def run_when_due(self) -> bool:
        """Fold, vacuum and trim if enough was committed since the last time; whether it was."""
        position = self.database.position
        if position - self.done_through < 2 * self.keep:
            return False
        self.done_through = position - self.keep
        self.database.engine.vacuum(self.done_through)
        self.database.trim()
        return True


def node(
    database: Annotated[str, typer.Option(help="hbase://host:port[,host:port..]/namespace")],
    keep: Annotated[
        int, typer.Option(help="positions whose snapshots stay readable", min=1)
    ] = 10_000,
) -> None:
    if not is_hbase_url(database):
        print("error: a node needs a database on HBase: hbase://..", file=sys.stderr)
        raise typer.Exit(2)
    stop = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)  # in every thread: one waits for them below
    try:
        store = acquire_store(database, OpenOptions())
    except Error as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    print(f"node {store.database.engine.node} tends {database}", flush=True)
    upkeep = NodeUpkeep(store.database, keep)
    while (stopped := signal.sigtimedwait(stop, LOOK_SECONDS)) is None:
        try:
            if upkeep.run_when_due():
                print(f"tended up to position {upkeep.done_through}", flush=True)
        except Unavailable as error:
            # HBase may answer again: the next look tries once more.
            print(f"waiting: {error}", file=sys.stderr, flush=True)
    print(f"stopping after {signal.Signals(stopped.si_signo).name}", flush=True)
    release_store(store)
