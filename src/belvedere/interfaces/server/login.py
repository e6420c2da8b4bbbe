"""Who may log in, and as whom.

    over the Unix socket   the system user who runs the server, under his own name: the owner
    everybody else         a role with LOGIN and a password, by SCRAM-SHA-256

A wrong password, an unknown user, and a role that may not log in give one and the same error, after
the same exchange and the same pause.
"""

from __future__ import annotations

import datetime
import logging
import os
import pwd
import secrets
import socket
import struct
import threading
from dataclasses import dataclass

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Role
from belvedere.errors import InvalidInput
from belvedere.interfaces.server.authentication import ScramExchange
from belvedere.interfaces.server.messages import MessageReader, MessageWriter
from belvedere.interfaces.server.startup import StartupParameters
from belvedere.values.datetime_text import parse_timestamptz
from belvedere.values.scram import mock_verifier, parse_verifier

FAILURE_PAUSE_S = 0.5
_CREDENTIALS = struct.Struct("3i")
_log = logging.getLogger("belvedere.server")


@dataclass(frozen=True, slots=True)
class LoginPolicy:
    """What logins of a server have in common. `secret` makes salts for users that do not exist."""

    certificate_hash: bytes | None = None
    secret: bytes = secrets.token_bytes(32)
    failure_pause_s: float = FAILURE_PAUSE_S


def log_in(
    policy: LoginPolicy,
    catalog: Catalog,
    wanted: StartupParameters,
    reader: MessageReader,
    writer: MessageWriter,
) -> Role | None:
    """The role of the client, None for the owner; 28P01 when it is not let in."""
    role = catalog.roles.get(wanted.user)
    if role is None and wanted.user == find_peer_name(reader.connection):
        return None
    if not _shows_password(policy, role, wanted, reader, writer) or role is None:
        _log.warning("login failed: user %r", wanted.user)
        threading.Event().wait(policy.failure_pause_s)
        raise InvalidInput("password authentication failed", sqlstate="28P01", user=wanted.user)
    return role


def _shows_password(
    policy: LoginPolicy,
    role: Role | None,
    wanted: StartupParameters,
    reader: MessageReader,
    writer: MessageWriter,
) -> bool:
    stored = None if role is None or role.verifier is None else parse_verifier(role.verifier)
    verifier = stored or mock_verifier(policy.secret, wanted.user)
    proven = ScramExchange(reader, writer, verifier, policy.certificate_hash).run()
    return proven and stored is not None and role is not None and _may_log_in(role)


def _may_log_in(role: Role) -> bool:
    if not role.login:
        return False
    if role.valid_until is None:
        return True
    return datetime.datetime.now(datetime.UTC) < parse_timestamptz(role.valid_until)


def find_peer_name(connection: socket.socket) -> str | None:
    """The name of the system user at the other end, when he is the one who runs the server."""
    if connection.family != socket.AF_UNIX:
        return None
    data = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(data)
    return pwd.getpwuid(user).pw_name if user == os.getuid() else None
