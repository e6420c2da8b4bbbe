"""URLs of databases on HBase: `hbase://host:port[,host:port..]/namespace[?option=value&..]`.

Every host is a Thrift2 gateway of the same HBase. Options:

    connections   connections of this process to each gateway, at most
    timeout_ms    how long one request may take
    lease_ms      for a new database: how long a process may be silent and not taken for dead
    grace_ms      for a new database: how long a request may be on its way
    regions       for a new database: into how many regions hashed tables, locks, log and outcomes
                  are spread each
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from belvedere.errors import InvalidInput

SCHEME = "hbase://"
PORT_DEFAULT = 9090
_NAMESPACE = re.compile(r"[A-Za-z0-9_]+")
GRACE_MS_MAX = 600_000
_RESERVED = ("hbase", "default")
_BOUNDS = {
    "connections": (1, 1000),
    "timeout_ms": (50, 600_000),
    "lease_ms": (1000, 3_600_000),
    "grace_ms": (500, GRACE_MS_MAX),
    "regions": (1, 256),
}


@dataclass(frozen=True, slots=True)
class GatewayAddress:
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class HBaseUrl:
    gateways: tuple[GatewayAddress, ...]
    namespace: str
    connections: int = 8
    timeout_ms: int = 2_500
    lease_ms: int | None = None
    grace_ms: int | None = None
    regions: int | None = None

    @property
    def timeout_seconds(self) -> float:
        return self.timeout_ms / 1000


def is_hbase_url(path: object) -> bool:
    return isinstance(path, str) and path.startswith(SCHEME)


def parse_url(text: str) -> HBaseUrl:
    """InvalidInput, saying what is wrong, when the text is no such URL."""
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise _bad_url(text, str(error)) from None
    if not text.startswith(SCHEME) or parts.fragment or "@" in parts.netloc:
        raise _bad_url(text, "not of the form hbase://host:port/namespace")
    namespace = parts.path.removeprefix("/")
    if not _NAMESPACE.fullmatch(namespace):
        raise _bad_url(text, "a namespace is letters, digits and underscores")
    if namespace in _RESERVED:
        raise _bad_url(text, "this namespace is HBase's own")
    gateways = tuple(_parse_gateway(text, each) for each in parts.netloc.split(","))
    if len(set(gateways)) < len(gateways):
        raise _bad_url(text, "a gateway is named twice")
    return HBaseUrl(gateways, namespace, **_parse_options(text, parts.query))


def _parse_gateway(text: str, part: str) -> GatewayAddress:
    host, colon, port = part.rpartition(":")
    if not colon or part.endswith("]"):
        host, port = part, str(PORT_DEFAULT)
    if not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise _bad_url(text, "a port is a number from 1 to 65535")
    host = host.strip("[]")
    if not host or any(character.isspace() for character in host):
        raise _bad_url(text, "a host is missing")
    return GatewayAddress(host, int(port))


def _parse_options(text: str, query: str) -> dict[str, int]:
    options: dict[str, int] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in _BOUNDS:
            raise _bad_url(text, f"unknown option {name!r}")
        low, high = _BOUNDS[name]
        if not value.isascii() or not value.isdigit() or not low <= int(value) <= high:
            raise _bad_url(text, f"{name} is a number from {low} to {high}")
        options[name] = int(value)
    return options


def _bad_url(text: str, why: str) -> InvalidInput:
    return InvalidInput("not a URL of an HBase database", sqlstate="22023", url=text, detail=why)
