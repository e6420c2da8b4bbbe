"""Verbs for whoever fills views from another process (WITH (backfill = 'later')).

fill_begin    views                       hold a position for the scan of their tables; the log is
                                          kept from it
fill_known    view, position, job         whether what a job has made is still what the view needs
fill_finish   view, position, job, files  take the made state in, catch up from the log, let the
                                          view be read

A view that waits is in state BUILDING: nobody reads or maintains it. `fill_begin` makes it empty
and sets its watermark before the position is chosen, so that no change is lost between the two.

`fill_finish` may be asked again after a crash, wherever it was. While the watermark is the position
of the scan nothing was added since, and taking the same files in once more changes nothing (they
are linked, not moved, so they are still there). Catching up moves the watermark; that the files
were in by then is said by a file of the job, `VIEW.taken`, which the next `fill_begin` removes.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from belvedere import failpoints
from belvedere.catalog.model import State, View
from belvedere.codec import keyspace
from belvedere.errors import InvalidInput, Unavailable
from belvedere.interfaces.verbs.serving import Arguments, Peer, Verb
from belvedere.kv.batch import Write
from belvedere.kv.files import sync_directory
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

    with peer.serving.filling:
        for view in views:
            for taken in _work(peer).glob(f"*/{view.id}.taken"):
                taken.unlink()
                sync_directory(taken.parent)
            database.store.delete_range(*keyspace.relation_range(view.id))
        _passed("fill.emptied")
        marked(database.position)
        lease = peer.serving.leases.take()
        marked(lease.position)
        _passed("fill.marked")
    return {"lease": lease.id, "position": lease.position}


def fill_known(peer: Peer, arguments: Arguments) -> bool:
    view = peer.database.catalog.get(arguments.number("view"))
    if not isinstance(view, View) or not filled_later(view):
        return False
    return _is_mine(peer, view, arguments)


def fill_finish(peer: Peer, arguments: Arguments) -> int:
    database = peer.database
    view = _waiting(peer, arguments.number("view"))
    with peer.serving.filling:
        if not _is_mine(peer, view, arguments):
            raise Unavailable(
                "another job has begun to fill the view",
                sqlstate="55006",
                view=view.name,
                position=arguments.number("position"),
            )
        if not _taken(peer, view, arguments).exists():
            _take(peer, view, arguments)
        reached = database.deferred.refresh(view)
        _passed("fill.caught_up")
        database.change_schema(lambda edit: edit.set_state(view.id, State.READY))
        _passed("fill.published")
    return reached


def _is_mine(peer: Peer, view: View, arguments: Arguments) -> bool:
    """Whether the view is as this job left it."""
    with peer.database.begin() as reader:
        at = watermark(reader, view.id)
    return at == arguments.number("position") or _taken(peer, view, arguments).exists()


def _take(peer: Peer, view: View, arguments: Arguments) -> None:
    """Take the files in, and say so where a crash does not reach."""
    files = [_own_file(peer, name) for name in arguments.texts("files") or []]
    taken = _taken(peer, view, arguments)
    links = taken.with_suffix(".links")
    shutil.rmtree(links, ignore_errors=True)
    links.mkdir()
    for file in files:
        os.link(file, links / file.name)
    _passed("fill.before_ingest")
    peer.database.store.ingest([links / file.name for file in files])
    _passed("fill.after_ingest")
    taken.touch()
    sync_directory(taken.parent)
    _passed("fill.taken")


def _taken(peer: Peer, view: View, arguments: Arguments) -> Path:
    job = (_work(peer) / arguments.text("job")).resolve()
    if job.parent != _work(peer) or not job.is_dir():
        raise InvalidInput("not a job of this store", sqlstate="22023", job=job.name)
    return job / f"{view.id}.taken"


def _work(peer: Peer) -> Path:
    return (peer.serving.directory / WORK_DIRECTORY).resolve()


def _passed(place: str) -> None:
    if failpoints.armed:
        failpoints.hit(place)


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
    if _work(peer) not in path.parents or not path.is_file():
        raise InvalidInput("not a file of a job", sqlstate="22023", path=name)
    return path


VERBS: dict[str, Verb] = {
    "fill_begin": fill_begin,
    "fill_known": fill_known,
    "fill_finish": fill_finish,
}
