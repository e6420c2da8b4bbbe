"""Verbs for whoever fills views from another process (`views.external_backfill`).

fill_begin    views                       hold a position for the scan of their tables; the log is
                                          kept from it
fill_known    view, position, job         whether what a job has made is still what the view needs
fill_finish   view, position, job, files  take the made state in, catch up from the log, let the
                                          view be read
"""

from __future__ import annotations

from typing import Any

from belvedere.interfaces.verbs.serving import Arguments, Peer, Verb
from belvedere.views.external_backfill import ExternalJob


def fill_begin(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    serving = peer.serving
    lease = serving.backfill.begin_job(arguments.items("views"), serving.leases.take)
    return {"lease": lease.id, "position": lease.position}


def fill_known(peer: Peer, arguments: Arguments) -> bool:
    return peer.serving.backfill.is_current(_job(arguments))


def fill_finish(peer: Peer, arguments: Arguments) -> int:
    return peer.serving.backfill.finish_job(_job(arguments), arguments.texts("files") or [])


def _job(arguments: Arguments) -> ExternalJob:
    return ExternalJob(
        arguments.number("view"), arguments.number("position"), arguments.text("job")
    )


VERBS: dict[str, Verb] = {
    "fill_begin": fill_begin,
    "fill_known": fill_known,
    "fill_finish": fill_finish,
}
