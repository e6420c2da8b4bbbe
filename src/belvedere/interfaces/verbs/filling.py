"""Verbs for whoever fills views from another process (WITH (backfill = 'later')).

fill_begin    views            hold a position for the scan of their tables; the log is kept from it
fill_finish   view, files      take the made state in, catch up from the log, let the view be read

A view that waits is in state BUILDING: nobody reads or maintains it. `fill_begin` makes it empty
and sets its watermark before the position is chosen, so that no change is lost between the two. A
job that dies leaves the view waiting; the next one begins anew with another position.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from belvedere.catalog.model import State, View
from belvedere.codec import keyspace
from belvedere.errors import InvalidInput, Unavailable
from belvedere.interfaces.verbs.serving import Arguments, Peer, Verb
from belvedere.kv.batch import Write
from belvedere.txn.border import Reader
from belvedere.views.build import filled_later
from belvedere.views.watermarks import watermark, watermark_write

WORK_DIRECTORY = "pipeline"


def fill_begin(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    database = peer.database
    views = [_waiting(peer, id_) for id_ in arguments.items("views")]

    def marked(position: int) -> None:
        def make(reader: Reader) -> list[Write]:
            return [watermark_write(view.id, position) for view in views]

        database.commits.derive(make)

    for view in views:
        database.store.delete_range(*keyspace.relation_range(view.id))
    marked(database.position)
    lease = peer.serving.leases.take()
    marked(lease.position)
    return {"lease": lease.id, "position": lease.position}


def fill_finish(peer: Peer, arguments: Arguments) -> int:
    database = peer.database
    view = _waiting(peer, arguments.number("view"))
    position = arguments.number("position")
    with database.begin() as reader:
        if watermark(reader, view.id) != position:
            raise Unavailable(
                "another job has begun to fill the view",
                sqlstate="55006",
                view=view.name,
                position=position,
            )
    files = [_own_file(peer, name) for name in arguments.texts("files") or []]
    if files:
        database.store.ingest(files)
    reached = database.deferred.refresh(view)
    database.change_schema(lambda edit: edit.set_state(view.id, State.READY))
    return reached


def _waiting(peer: Peer, id_: Any) -> View:
    view = peer.database.catalog.get(id_) if isinstance(id_, int) else None
    if not isinstance(view, View):
        raise InvalidInput("no such view", sqlstate="42P01", id=id_)
    if not filled_later(view):
        raise InvalidInput(
            "view is filled already",
            sqlstate="55000",
            view=view.name,
            hint="create it WITH (backfill = 'later'), or repair it with REPAIR MATERIALIZED VIEW",
        )
    return view


def _own_file(peer: Peer, name: str) -> Path:
    """Only what a job has put beside the store is taken in."""
    path = Path(name).resolve()
    work = (peer.serving.directory / WORK_DIRECTORY).resolve()
    if work not in path.parents or not path.is_file():
        raise InvalidInput("not a file of a job", sqlstate="22023", path=name)
    return path


VERBS: dict[str, Verb] = {"fill_begin": fill_begin, "fill_finish": fill_finish}
