"""SCRAM-SHA-256 (RFC 5802, RFC 7677): passwords as verifiers, and the proof of who knows one.

A verifier is what PostgreSQL stores, so that its tools can make one too:

    SCRAM-SHA-256$<iterations>:<salt>$<stored key>:<server key>

The stored key checks a client's proof, the server key signs the answer; neither gives the password.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import stringprep
import unicodedata
from typing import NamedTuple

METHOD = "SCRAM-SHA-256"
ITERATIONS = 4096
_ITERATIONS_MAX = 1_000_000
SALT_BYTES = 16


class Verifier(NamedTuple):
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes


def make_verifier(password: str, salt: bytes, iterations: int = ITERATIONS) -> str:
    """The verifier of a password; one that is a verifier already stays as it is."""
    if parse_verifier(password) is not None:
        return password
    salted = hashlib.pbkdf2_hmac("sha256", _prepare_password(password), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    stored = hashlib.sha256(client_key).digest()
    server = hmac.digest(salted, b"Server Key", "sha256")
    return f"{METHOD}${iterations}:{_encode(salt)}${_encode(stored)}:{_encode(server)}"


def parse_verifier(text: str) -> Verifier | None:
    """The parts of a verifier, None when the text is none."""
    try:
        method, first, second = text.split("$")
        iterations, salt = first.split(":")
        stored, server = (base64.b64decode(part, validate=True) for part in second.split(":"))
        found = Verifier(int(iterations), base64.b64decode(salt, validate=True), stored, server)
    except (ValueError, binascii.Error):
        return None
    sizes = len(stored) == len(server) == hashlib.sha256().digest_size
    return found if method == METHOD and sizes and 0 < found.iterations <= _ITERATIONS_MAX else None


def mock_verifier(secret: bytes, user: str) -> Verifier:
    """A verifier for a user who has none: always the same for a name, and no password fits. So
    nobody learns from the exchange which users exist."""
    salt = hmac.digest(secret, user.encode(), "sha256")[:SALT_BYTES]
    return Verifier(ITERATIONS, salt, b"\0" * 32, hmac.digest(secret, b"key" + salt, "sha256"))


def check_proof(verifier: Verifier, message: bytes, proof: bytes) -> bool:
    """Whether a client's proof for the exchanged message shows that it knows the password."""
    if len(proof) != len(verifier.stored_key):
        return False
    signature = hmac.digest(verifier.stored_key, message, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, signature))
    return hmac.compare_digest(hashlib.sha256(client_key).digest(), verifier.stored_key)


def sign_message(verifier: Verifier, message: bytes) -> bytes:
    """The server's signature, by which the client knows that it is the right one."""
    return hmac.digest(verifier.server_key, message, "sha256")


def _encode(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _prepare_password(password: str) -> bytes:
    """The password by SASLprep (RFC 4013); as it is when that refuses it, as PostgreSQL does."""
    mapped = "".join(
        " " if stringprep.in_table_c12(one) else one
        for one in password
        if not stringprep.in_table_b1(one)
    )
    prepared = unicodedata.normalize("NFKC", mapped)
    if not prepared or any(map(_is_prohibited, prepared)) or _mixes_directions(prepared):
        return password.encode()
    return prepared.encode()


def _is_prohibited(one: str) -> bool:
    return (
        stringprep.in_table_a1(one)
        or stringprep.in_table_c12(one)
        or stringprep.in_table_c21_c22(one)
        or stringprep.in_table_c3(one)
        or stringprep.in_table_c4(one)
        or stringprep.in_table_c5(one)
        or stringprep.in_table_c6(one)
        or stringprep.in_table_c7(one)
        or stringprep.in_table_c8(one)
        or stringprep.in_table_c9(one)
    )


def _mixes_directions(text: str) -> bool:
    """Whether it breaks the rule for text that is written from right to left."""
    if not any(map(stringprep.in_table_d1, text)):
        return False
    ends = stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])
    return not ends or any(map(stringprep.in_table_d2, text))
