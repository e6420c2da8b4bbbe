"""Login by SCRAM-SHA-256: the messages between server and client.

    server   AuthenticationSASL: the mechanisms it has
    client   the mechanism, whether it binds to the TLS channel, its nonce
    server   both nonces, salt, iterations
    client   the nonces again, and its proof
    server   its own signature, or the same error for a wrong password and an unknown user

With TLS the client may bind the exchange to the channel (SCRAM-SHA-256-PLUS): somebody in between,
with another certificate, cannot pass it on.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import secrets
import ssl

from belvedere.errors import InvalidInput
from belvedere.interfaces.server.messages import (
    BodyReader,
    MessageReader,
    MessageWriter,
    build_message,
    pack_int32,
    pack_text,
)
from belvedere.values import scram

PLUS = scram.METHOD + "-PLUS"
_SASL, _SASL_CONTINUE, _SASL_FINAL = 10, 11, 12
_NONCE_BYTES = 18


class ScramExchange:
    """One login. `verifier` is that of the user, or a mock of one that no password fits."""

    def __init__(
        self,
        reader: MessageReader,
        writer: MessageWriter,
        verifier: scram.Verifier,
        certificate_hash: bytes | None,
    ) -> None:
        """`certificate_hash` is that of the server's certificate, None without TLS."""
        self._reader = reader
        self._writer = writer
        self._verifier = verifier
        self._binding = certificate_hash

    def run(self) -> bool:
        """Whether the client has shown that it knows the password."""
        names = [PLUS] if self._binding is not None else []
        offered = b"".join(pack_text(name) for name in [*names, scram.METHOD])
        self._send(_SASL, offered + b"\0")
        header, bare = self._read_first_message()
        client_nonce = _read_attribute(bare.split(b",")[1], b"r")
        nonce = client_nonce + base64.b64encode(secrets.token_bytes(_NONCE_BYTES))
        salt = base64.b64encode(self._verifier.salt)
        first = b"r=%s,s=%s,i=%d" % (nonce, salt, self._verifier.iterations)
        self._send(_SASL_CONTINUE, first)
        final = self._read_response()
        without_proof, _, proof = final.rpartition(b",p=")
        bound = header + (self._binding or b"") if header.startswith(b"p=") else header
        wanted = b"c=%s,r=%s" % (base64.b64encode(bound), nonce)
        message = b",".join([bare, first, without_proof])
        if without_proof != wanted or not scram.check_proof(
            self._verifier, message, _decode_base64(proof)
        ):
            return False
        signature = base64.b64encode(scram.sign_message(self._verifier, message))
        self._send(_SASL_FINAL, b"v=" + signature)
        return True

    def _read_first_message(self) -> tuple[bytes, bytes]:
        """The channel binding header of the client, and its message without it."""
        kind, body = self._reader.read_message()
        fields = BodyReader(body)
        if kind != ord("p"):
            raise _protocol_error()
        mechanism = fields.read_text()
        data = fields.read_value()
        fields.require_end()
        if data is None or mechanism not in (scram.METHOD, PLUS):
            raise _protocol_error()
        parts = data.split(b",", 2)
        if len(parts) != 3 or parts[2].count(b",") < 1:
            raise _protocol_error()
        flag, name, bare = parts
        plus = mechanism == PLUS
        if plus != (flag == b"p=tls-server-end-point") or (plus and self._binding is None):
            raise _protocol_error()
        if flag == b"y" and self._binding is not None:
            raise _protocol_error()  # the client was told that we cannot bind, by somebody else
        if flag not in (b"n", b"y") and not plus:
            raise _protocol_error()
        return b"%s,%s," % (flag, name), bare

    def _read_response(self) -> bytes:
        kind, body = self._reader.read_message()
        if kind != ord("p"):
            raise _protocol_error()
        return body

    def _send(self, code: int, data: bytes) -> None:
        self._writer.add(build_message(b"R", pack_int32(code) + data))
        self._writer.flush()


def hash_certificate(certificate: bytes) -> bytes:
    """The hash of a certificate (DER) that channel binding uses (tls-server-end-point)."""
    return hashlib.sha256(certificate).digest()


def load_certificate_hash(path: str) -> bytes:
    """The hash of the first certificate of a PEM file."""
    with open(path) as file:
        text = file.read()
    end = "-----END CERTIFICATE-----"
    start = text.index("-----BEGIN CERTIFICATE-----")
    return hash_certificate(ssl.PEM_cert_to_DER_cert(text[start : text.index(end) + len(end)]))


def _read_attribute(text: bytes, name: bytes) -> bytes:
    if not text.startswith(name + b"=") or len(text) < 3:
        raise _protocol_error()
    return text[2:]


def _decode_base64(text: bytes) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise _protocol_error() from None


def _protocol_error() -> InvalidInput:
    return InvalidInput("malformed SCRAM message", sqlstate="08P01")
