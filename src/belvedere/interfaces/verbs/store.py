"""Verbs about the store itself: position, identity, backup."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

from belvedere import interrupts
from belvedere.errors import InvalidInput, Unavailable
from belvedere.interfaces.verbs.peer import Arguments, Peer, Verb


def back_up(peer: Peer, arguments: Arguments) -> int:
    destination = arguments.optional_text("destination")
    if destination is None or not os.path.isabs(destination):
        raise InvalidInput("backup needs an absolute destination", sqlstate="22023")
    return peer.database.back_up(Path(destination))


def read_position(peer: Peer, arguments: Arguments) -> int:
    return peer.database.position


def read_identity(peer: Peer, arguments: Arguments) -> dict[str, Any]:
    """The identity of the store, and the positions its log has: first .. position."""
    database = peer.database
    return {
        "store": database.store_id.hex(),
        "incarnation": f"{database.incarnation:x}",
        "position": database.position,
        "first": database.log.first_position,
    }


def wait_past(peer: Peer, arguments: Arguments) -> int:
    """Wait at most `seconds` until the log is past a position; return the newest position."""
    deadline = time.monotonic() + min(arguments.get_number("seconds"), 60)
    position, visibility = arguments.get_number("position"), peer.database.visibility
    while (left := deadline - time.monotonic()) > 0:
        if visibility.wait_past(position, min(left, interrupts.POLL_S)):
            break
        if peer.served_store.closing.is_set():
            raise Unavailable("store is closed", sqlstate="57P01")
    return peer.database.position


VERBS: dict[str, Verb] = {
    "backup": back_up,
    "position": read_position,
    "identity": read_identity,
    "wait": wait_past,
}
