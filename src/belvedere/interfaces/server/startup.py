"""The first messages of a connection: encryption, version and parameters, or a request to cancel.

SSLRequest        answered S, then TLS, or N
GSSENCRequest     answered N
CancelRequest     process and key; the connection is closed without an answer
StartupMessage    version 3.0 and parameters; a newer 3.x is negotiated down
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field

from belvedere.errors import InvalidInput
from belvedere.interfaces.server.messages import (
    BodyReader,
    MessageReader,
    MessageWriter,
    build_message,
    pack_int32,
    pack_text,
)

SSL_REQUEST = 80877103
GSS_REQUEST = 80877104
CANCEL_REQUEST = 80877102
VERSION_3 = 3 << 16
_NEGOTIATED_PREFIX = "_pq_."


@dataclass(frozen=True, slots=True)
class CancelRequest:
    process: int
    key: bytes


@dataclass(slots=True)
class StartupParameters:
    """What a client says of itself; names of settings are in lower case."""

    user: str
    database: str
    settings: dict[str, str] = field(default_factory=dict)


def receive_startup(
    reader: MessageReader, writer: MessageWriter, tls: ssl.SSLContext | None
) -> StartupParameters | CancelRequest:
    """Read up to the message that says what the client wants, encrypting when it asks to."""
    while True:
        body = BodyReader(reader.read_startup())
        code = body.read_int32()
        if code == SSL_REQUEST:
            _answer_ssl_request(reader, writer, tls)
        elif code == GSS_REQUEST:
            writer.connection.sendall(b"N")
        elif code == CANCEL_REQUEST:
            process = body.read_int32()
            return CancelRequest(process, body.read_bytes(4))
        elif code >> 16 == 3:
            return _read_parameters(body, writer, code)
        else:
            raise InvalidInput(
                "unsupported frontend protocol",
                sqlstate="0A000",
                version=f"{code >> 16}.{code & 0xFFFF}",
                hint="use a client that speaks version 3",
            )


def _answer_ssl_request(
    reader: MessageReader, writer: MessageWriter, tls: ssl.SSLContext | None
) -> None:
    if not reader.is_empty:
        # What came before encryption could be somebody else's.
        raise InvalidInput("received unencrypted data after SSL request", sqlstate="08P01")
    if tls is None or isinstance(reader.connection, ssl.SSLSocket):
        writer.connection.sendall(b"N")
        return
    writer.connection.sendall(b"S")
    reader.connection = writer.connection = tls.wrap_socket(reader.connection, server_side=True)


def _read_parameters(body: BodyReader, writer: MessageWriter, code: int) -> StartupParameters:
    given: dict[str, str] = {}
    while (name := body.read_text()) != "":
        given[name] = body.read_text()
    body.require_end()
    unknown = [name for name in given if name.startswith(_NEGOTIATED_PREFIX)]
    if code != VERSION_3 or unknown:
        names = b"".join(pack_text(name) for name in unknown)
        writer.add(build_message(b"v", pack_int32(0) + pack_int32(len(unknown)) + names))
    user = given.pop("user", "")
    if not user:
        raise InvalidInput("no user name specified in startup packet", sqlstate="28000")
    if given.pop("replication", "false").lower() not in ("false", "off", "no", "0"):
        raise InvalidInput("replication connections are not supported", sqlstate="0A000")
    database = given.pop("database", "") or user
    settings = _parse_options(given.pop("options", ""))
    settings |= {name.lower(): value for name, value in given.items() if name not in unknown}
    return StartupParameters(user, database, settings)


def _parse_options(text: str) -> dict[str, str]:
    """Settings of an option string such as `-c statement_timeout=5s --freshness=latest`; a
    backslash keeps a blank inside of a value."""
    found: dict[str, str] = {}
    words = [word.replace("\0", " ") for word in text.replace("\\ ", "\0").split()]
    at = 0
    while at < len(words):
        word = words[at]
        if word == "-c" and at + 1 < len(words):
            at += 1
            word = words[at]
        elif word.startswith(("-c", "--")):
            word = word[2:]
        else:
            raise InvalidInput("invalid command-line argument", sqlstate="42601", argument=word)
        name, equals, value = word.partition("=")
        if not equals:
            raise InvalidInput("invalid command-line argument", sqlstate="42601", argument=word)
        found[name.replace("-", "_").lower()] = value
        at += 1
    return found
