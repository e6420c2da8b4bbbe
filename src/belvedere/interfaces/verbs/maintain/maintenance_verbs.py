"""Verbs for a process that maintains or verifies views from outside.

catalog         lease                     all stored catalog objects, at the lease's position
mark            lease, view               the position of the view's stored state
state_splits    lease, view, count        key ranges of the stored state
state           lease, view, range        stored keys and values
groups                                    the deferred maintenance groups and their claims
claim_take      group, owner, force       take the claim to maintain a group
claim_renew     claim                     extend the claim to the newest position
claim_advance   claim, additions          apply the additions of the log range atomically
claim_release   claim                     return the group to the worker
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation_codecs import compiled_view
from belvedere.codec import accumulator
from belvedere.errors import InvalidInput
from belvedere.interfaces.verbs.leases import SnapshotLease
from belvedere.interfaces.verbs.maintain.pairs import PAIRS
from belvedere.interfaces.verbs.peer import Arguments, Peer, Stream, Verb
from belvedere.interfaces.verbs.read.key_splits import split_range
from belvedere.values.quoting import quote_identifier
from belvedere.views.changefeed.entries import Addition
from belvedere.views.state import claims
from belvedere.views.state.claims import Claim
from belvedere.views.state.watermarks import (
    follows_log,
    list_attached_group_views,
    list_group_views,
    list_ready_deferred_views,
    read_applied_position,
    read_watermark,
)

BATCH_ROWS = 5_000


def _use_lease(peer: Peer, arguments: Arguments) -> Any:
    leases = peer.served_store.leases
    return leases.use_lease(arguments.get_text("lease"), arguments.get_number("position"))


def read_catalog(peer: Peer, arguments: Arguments) -> list[bytes]:
    with _use_lease(peer, arguments) as held:
        return [model.encode(item) for item in held.reader.catalog.objects.values()]


# -- the stored state of a view --------------------------------------------------------------------


def read_view_watermark(peer: Peer, arguments: Arguments) -> int:
    with _use_lease(peer, arguments) as held:
        view = _require_view(held, arguments)
        if not follows_log(view):
            return int(held.position)
        reached = read_applied_position(held.reader, view)
        if reached is None:
            raise InvalidInput("view has no watermark", sqlstate="55000", view=view.name)
        return reached


def state_splits(peer: Peer, arguments: Arguments) -> list[list[bytes]]:
    with _use_lease(peer, arguments) as held:
        stored = compiled_view(held.reader.catalog, _require_view(held, arguments).id)
        return split_range(held.reader, stored.start, stored.end, arguments.get_number("count"))


def stream_state(peer: Peer, arguments: Arguments) -> Stream:
    return Stream(PAIRS, _scan_state(peer, arguments))


def _scan_state(peer: Peer, arguments: Arguments) -> Iterator[pa.RecordBatch]:
    start, end = arguments.get_bytes("start"), arguments.get_bytes("end")
    with _use_lease(peer, arguments) as held:
        stored = compiled_view(held.reader.catalog, _require_view(held, arguments).id)
        start, end = max(start, stored.start), min(end, stored.end)
        for pairs in held.reader.scan(start, end, batch_rows=BATCH_ROWS):
            keys, values = zip(*pairs)
            arrays = [pa.array(keys, pa.binary()), pa.array(values, pa.binary())]
            yield pa.RecordBatch.from_arrays(arrays, schema=PAIRS)


def _require_view(held: SnapshotLease, arguments: Arguments) -> View:
    if held.transaction is None:
        raise InvalidInput(
            "the state of a view is kept at its newest position only", sqlstate="22023"
        )
    found = held.reader.catalog.get(arguments.get_number("view"))
    if not isinstance(found, View):
        raise InvalidInput("no such view", sqlstate="42P01", id=arguments.get_number("view"))
    return found


# -- claims ----------------------------------------------------------------------------------------


def list_groups(peer: Peer, arguments: Arguments) -> list[dict[str, Any]]:
    """`views` are the members that advance with the group, `names` all views of the group."""
    with peer.database.begin() as reader:
        found = sorted({view.group for view in list_ready_deferred_views(reader.catalog)})
        return [_describe_group(reader, group) for group in found]


def _describe_group(reader: Any, group: int) -> dict[str, Any]:
    held = claims.read_current_claim(reader, group)
    of_group = list_group_views(reader.catalog, group)
    return {
        "group": group,
        "views": [view.id for view in list_attached_group_views(reader, group)],
        "names": [view.name for view in of_group],
        "full_names": [_full_name(reader.catalog, view) for view in of_group],
        "watermark": read_watermark(reader, group),
        "position": reader.position,
        "owner": "" if held is None else held.owner,
        "epoch": 0 if held is None else held.epoch,
    }


def _full_name(catalog: Catalog, view: View) -> str:
    schema = next(s.name for s in catalog.schemas if s.id == view.schema)
    return quote_identifier(schema, view.name)


def claim_take(peer: Peer, arguments: Arguments) -> list[Any]:
    taken = claims.take_claim(
        peer.database.commits,
        arguments.get_number("group"),
        arguments.get_text("owner"),
        positions_max=arguments.get_number("positions_max"),
        force=bool(arguments.optional_number("force")),
    )
    return list(taken)


def claim_renew(peer: Peer, arguments: Arguments) -> list[Any]:
    claim, most = _parse_claim(arguments), arguments.get_number("positions_max")
    return list(claims.extend_claim(peer.database.commits, claim, positions_max=most))


def claim_advance(peer: Peer, arguments: Arguments) -> list[Any]:
    claim, most = _parse_claim(arguments), arguments.get_number("positions_max")
    additions = list(_parse_additions(arguments))
    return list(claims.advance_claim(peer.database.commits, claim, additions, positions_max=most))


def claim_release(peer: Peer, arguments: Arguments) -> None:
    claims.release_claim(peer.database.commits, _parse_claim(arguments))


def _parse_claim(arguments: Arguments) -> Claim:
    given = arguments.get_list("claim")
    kinds = (int, str, int, int, int, int)
    if len(given) != len(kinds) or not all(isinstance(v, k) for v, k in zip(given, kinds)):
        raise InvalidInput("not a claim", sqlstate="08P01")
    return Claim(*given)


def _parse_additions(arguments: Arguments) -> Iterator[Addition]:
    upload = arguments.upload
    if upload.schema.names != PAIRS.names:
        raise InvalidInput("additions are keys and values", sqlstate="08P01")
    for batch in upload.batches:
        for key, value in zip(batch.column("key").to_pylist(), batch.column("value").to_pylist()):
            yield key, *accumulator.decode(value)


VERBS: dict[str, Verb] = {
    "catalog": read_catalog,
    "mark": read_view_watermark,
    "state_splits": state_splits,
    "state": stream_state,
    "groups": list_groups,
    "claim_take": claim_take,
    "claim_renew": claim_renew,
    "claim_advance": claim_advance,
    "claim_release": claim_release,
}
