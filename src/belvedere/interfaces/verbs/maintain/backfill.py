"""Verbs for a process that backfills views from outside (`views.backfill.external_backfill`).

fill_begin    views                       hold a position for the scan of their tables; the log is
                                          kept from it on
fill_known    view, position, job         whether the state that a job computed is still current
fill_write    view, position, state       write the state of some keys, on a row-atomic store
fill_finish   view, position, job, files  ingest the computed state, catch up from the log, make the
                                          view READY
"""

from __future__ import annotations

from typing import Any

from belvedere.interfaces.verbs.maintain.pairs import PAIRS
from belvedere.interfaces.verbs.peer import Arguments, Peer, Verb
from belvedere.views.backfill.contracts import ExternalJob


def begin_backfill(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    serving = peer.served_store
    lease = serving.backfill.begin_backfill_job(
        arguments.get_list("views"), serving.leases.take_lease
    )
    return {"lease": lease.id, "position": lease.position}


def is_backfill_known(peer: Peer, arguments: Arguments) -> bool:
    return peer.served_store.backfill.is_job_current(_job(arguments))


def write_state(peer: Peer, arguments: Arguments) -> int:
    """Returns the number of keys."""
    job, written = _job(arguments), 0
    for batch in arguments.upload.batches:
        columns = (batch.column(name).to_pylist() for name in PAIRS.names)
        pairs = list(zip(*columns))
        peer.served_store.backfill.write_state(job, pairs)
        written += len(pairs)
    return written


def finish_backfill(peer: Peer, arguments: Arguments) -> int:
    return peer.served_store.backfill.finish_backfill_job(
        _job(arguments), arguments.get_texts("files") or []
    )


def _job(arguments: Arguments) -> ExternalJob:
    return ExternalJob(
        arguments.get_number("view"), arguments.get_number("position"), arguments.get_text("job")
    )


VERBS: dict[str, Verb] = {
    "fill_begin": begin_backfill,
    "fill_known": is_backfill_known,
    "fill_write": write_state,
    "fill_finish": finish_backfill,
}
