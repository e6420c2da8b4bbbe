"""Verbs of a subscription to a view from another process: one subscription for each peer.

subscribe   view, from_position | from_token     the position it begins after
poll        milliseconds            the changes since, and the position reached
"""

from __future__ import annotations

from typing import Any

import msgspec

from belvedere.errors import InvalidInput
from belvedere.interfaces.verbs.peer import Arguments, Peer, Stream, Verb
from belvedere.interfaces.verbs.plain_values import encode_values
from belvedere.interfaces.verbs.wire import bytes_to_batch
from belvedere.session.materialized.table_subscription import open_subscription
from belvedere.session.session import Session


def subscribe_to_view(peer: Peer, arguments: Arguments) -> int:
    session = Session(peer.served_store.shared, read_only=bool(arguments.get_number("read_only")))
    view, position = arguments.get_text("view"), arguments.optional_number("from_position")
    start = arguments.optional_text("from_token") if position is None else position
    peer.subscription = open_subscription(session, view, start)
    return peer.subscription.position


def poll_changes(peer: Peer, arguments: Arguments) -> Stream:
    if peer.subscription is None:
        raise InvalidInput("connection has no subscription", sqlstate="08P01")
    found = peer.subscription.poll(arguments.get_number("milliseconds") / 1000)
    changes = [[one.position, encode_values(one.row), one.weight] for one in found]
    value: dict[str, Any] = {"position": peer.subscription.position}
    batch = bytes_to_batch(msgspec.msgpack.encode(changes))
    return Stream(batch.schema, [batch], value)


VERBS: dict[str, Verb] = {"subscribe": subscribe_to_view, "poll": poll_changes}
