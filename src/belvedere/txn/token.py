"""Position tokens: authenticated log positions that a client may carry to another connection.

    store id (16) . incarnation (8) . position (8) . MAC (8), as URL-safe base64

A token of another store, of an earlier incarnation, ahead of what this store has, or with a wrong
MAC is refused; never answered with older data.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import struct
from typing import NamedTuple

from belvedere.errors import InvalidInput

_BODY = struct.Struct(">16sQQ")
_MAC_BYTES = 8


class Token(NamedTuple):
    store_id: bytes
    incarnation: int
    position: int


def issue(token: Token, secret: bytes) -> str:
    body = _BODY.pack(*token)
    return base64.urlsafe_b64encode(body + _mac(body, secret)).decode()


def accept(text: str, expected: Token, secret: bytes) -> int:
    """The position a token stands for; `expected` says which store and how far it has got."""
    try:
        data = base64.urlsafe_b64decode(text.encode("ascii"))
    except (UnicodeEncodeError, binascii.Error):
        raise _refused("not a token") from None
    body, mac = data[: _BODY.size], data[_BODY.size :]
    if len(body) != _BODY.size or len(mac) != _MAC_BYTES:
        raise _refused("not a token")
    token = Token(*_BODY.unpack(body))
    if token.store_id != expected.store_id:
        raise _refused("token of another store")
    if not hmac.compare_digest(mac, _mac(body, secret)):
        raise _refused("token was not issued by this store")
    if token.incarnation != expected.incarnation:
        raise _refused(
            "token of another incarnation", found=token.incarnation, now=expected.incarnation
        )
    if token.position > expected.position:
        raise _refused("token is ahead of the log", found=token.position, now=expected.position)
    return token.position


def _mac(body: bytes, secret: bytes) -> bytes:
    return hashlib.blake2b(body, key=secret, digest_size=_MAC_BYTES).digest()


def _refused(message: str, **facts: int) -> InvalidInput:
    refused = InvalidInput(
        message, sqlstate="22023", hint="take a new token from a connection to this store"
    )
    refused.facts.update(facts)
    return refused
