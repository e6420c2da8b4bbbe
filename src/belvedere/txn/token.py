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


class PositionToken(NamedTuple):
    store_id: bytes
    incarnation: int
    position: int


def issue_token(token: PositionToken, secret: bytes) -> str:
    body = _BODY.pack(*token)
    return base64.urlsafe_b64encode(body + _compute_mac(body, secret)).decode()


def verify_token(text: str, expected: PositionToken, secret: bytes) -> int:
    """The position a token stands for; `expected` says which store and how far it has got."""
    try:
        data = base64.urlsafe_b64decode(text.encode("ascii"))
    except (UnicodeEncodeError, binascii.Error):
        raise _refusal_error("not a token") from None
    body, mac = data[: _BODY.size], data[_BODY.size :]
    if len(body) != _BODY.size or len(mac) != _MAC_BYTES:
        raise _refusal_error("not a token")
    token = PositionToken(*_BODY.unpack(body))
    if token.store_id != expected.store_id:
        raise _refusal_error("token of another store")
    if not hmac.compare_digest(mac, _compute_mac(body, secret)):
        raise _refusal_error("token was not issued by this store")
    if token.incarnation != expected.incarnation:
        raise _refusal_error(
            "token of another incarnation", found=token.incarnation, now=expected.incarnation
        )
    if token.position > expected.position:
        raise _refusal_error(
            "token is ahead of the log", found=token.position, now=expected.position
        )
    return token.position


def _compute_mac(body: bytes, secret: bytes) -> bytes:
    return hashlib.blake2b(body, key=secret, digest_size=_MAC_BYTES).digest()


def _refusal_error(message: str, **facts: int) -> InvalidInput:
    refused = InvalidInput(
        message, sqlstate="22023", hint="take a new token from a connection to this store"
    )
    refused.facts.update(facts)
    return refused
