"""The command `belvedere serve`: a store for clients of PostgreSQL, until it is stopped."""

from __future__ import annotations

import signal
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from belvedere.interfaces.server.listener import Listener
from belvedere.interfaces.stores import OpenOptions, acquire_store, release_store


def serve(
    path: Annotated[Path, typer.Argument(help="the store's directory; made if it is not there")],
    socket: Annotated[Path | None, typer.Option(help="directory of the Unix socket")] = None,
    port: Annotated[int, typer.Option(help="its number: .s.PGSQL.PORT", min=1, max=65535)] = 5432,
) -> None:
    stop = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)  # in every thread: one waits for them below
    store = acquire_store(str(path.resolve()), OpenOptions(allow_remote=False))
    directory = socket or Path(tempfile.gettempdir())
    listener = Listener(store.shared, path.resolve().stem, directory, port)
    print(f"serving {path}: psql -h {directory} -p {port} {path.resolve().stem}", flush=True)
    stopped = signal.sigwait(stop)
    print(f"stopping after {signal.Signals(stopped).name}", flush=True)
    listener.close()
    release_store(store)
