"""The command `belvedere serve`: a store for clients of PostgreSQL, until it is stopped."""

from __future__ import annotations

import ipaddress
import shutil
import signal
import ssl
import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

from belvedere.errors import Error
from belvedere.interfaces.server.authentication import load_certificate_hash
from belvedere.interfaces.server.listener import MAX_CONNECTIONS, Endpoints, Listener
from belvedere.interfaces.server.login import LoginPolicy
from belvedere.interfaces.stores import (
    OpenOptions,
    acquire_store,
    is_new_directory,
    release_store,
)
from belvedere.kv.hbase.url import is_hbase_url, parse_url

DEFAULT_PORT = 5432
TURN_S = 0.0005
"""How long a thread that computes keeps the interpreter while others wait for it: a client that
reads one row should not wait 5 ms, Python's own turn, for each of those that compute."""


def serve(
    path: Annotated[
        str, typer.Argument(help="the store's directory, or hbase://..; made if it is not there")
    ],
    listen: Annotated[
        str | None, typer.Option(help="HOST:PORT for roles with a password; port 0: a free one")
    ] = None,
    socket: Annotated[Path | None, typer.Option(help="directory of the Unix socket")] = None,
    port: Annotated[int, typer.Option(help="its number: .s.PGSQL.PORT", min=1, max=65535)] = (
        DEFAULT_PORT
    ),
    tls_cert: Annotated[Path | None, typer.Option(help="certificate (PEM)")] = None,
    tls_key: Annotated[Path | None, typer.Option(help="its private key (PEM)")] = None,
    allow_plain: Annotated[
        bool, typer.Option("--allow-plain", help="listen beyond this machine without TLS")
    ] = False,
    max_connections: Annotated[
        int, typer.Option(help="clients at once; more get 53300", min=1)
    ] = MAX_CONNECTIONS,
) -> None:
    address = None if listen is None else _parse_address(listen)
    tls = _load_tls(tls_cert, tls_key)
    if address is not None and tls is None and not allow_plain and not _is_loopback(address[0]):
        raise typer.BadParameter(
            f"{address[0]} can be reached from other machines: give --tls-cert and --tls-key, or "
            "--allow-plain"
        )
    stop = {signal.SIGINT, signal.SIGTERM}
    sys.setswitchinterval(TURN_S)
    signal.pthread_sigmask(signal.SIG_BLOCK, stop)  # in every thread: one waits for them below
    try:
        _serve_until_signal(
            path,
            Endpoints(socket or Path(tempfile.gettempdir()), port, address, tls),
            LoginPolicy(None if tls_cert is None else load_certificate_hash(str(tls_cert))),
            max_connections,
            stop,
        )
    except Error as error:
        if error.sqlstate == "55006":
            error.hint = (
                "a server opens the store itself: close it there, and connect to the server"
            )
        typer.echo(f"belvedere: {error}", err=True)
        raise typer.Exit(1) from error


def _serve_until_signal(
    path: str,
    endpoints: Endpoints,
    policy: LoginPolicy,
    max_connections: int,
    stop: set[signal.Signals],
) -> None:
    directory = Path(path).resolve()
    on_hbase = is_hbase_url(path)
    is_new = is_new_directory(path)
    store = acquire_store(path if on_hbase else str(directory), OpenOptions(allow_remote=False))
    serves = False
    try:
        name = parse_url(path).namespace if on_hbase else directory.stem
        listener = Listener(store.shared, name, endpoints, policy, connections_max=max_connections)
        serves = True
        if is_new:
            print(f"there was no store: made {path}", flush=True)
        print(
            f"serving {path}: psql -h {endpoints.directory} -p {endpoints.socket_port} {name}",
            flush=True,
        )
        if endpoints.address is not None:
            print(f"listening on {endpoints.address[0]}:{listener.port}", flush=True)
        if not store.shared.host.catalog.roles:
            print("no role yet: CREATE ROLE .. LOGIN SUPERUSER PASSWORD '..' lets others in")
        stopped = signal.sigwait(stop)
        print(f"stopping after {signal.Signals(stopped).name}", flush=True)
        listener.close()
    finally:
        release_store(store)
        if is_new and not serves:
            shutil.rmtree(directory)  # a store that nobody has used


def _parse_address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host:
        host, port = text, str(DEFAULT_PORT)
    if not port.isdigit() or int(port) > 65535:
        raise typer.BadParameter(f"not HOST:PORT: {text}")
    return host.strip("[]"), int(port)


def _is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _load_tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise typer.BadParameter("--tls-cert and --tls-key come together")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise typer.BadParameter(f"certificate or key cannot be read: {error}") from error
    return context
