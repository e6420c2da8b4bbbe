"""Gateways that misbehave: each is a listening socket that answers in its own bad way."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Answer = Callable[[socket.socket, threading.Event], None]


def close_at_once(client: socket.socket, over: threading.Event) -> None:
    """Like a gateway that is killed while it works."""


def answer_nothing(client: socket.socket, over: threading.Event) -> None:
    over.wait()


def answer_like_a_web_server(client: socket.socket, over: threading.Event) -> None:
    client.recv(65536)
    client.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
    over.wait()


def answer_noise(client: socket.socket, over: threading.Event) -> None:
    client.recv(65536)
    client.sendall(bytes(range(256)) * 64)
    over.wait()


def announce_far_too_much(client: socket.socket, over: threading.Event) -> None:
    """A well-formed beginning, then a list of two billion entries."""
    client.recv(65536)
    name = b"listNamespaces"
    begin = struct.pack(">II", 0x80010002, len(name)) + name + struct.pack(">I", 1)
    client.sendall(begin + struct.pack(">BHBI", 15, 0, 11, 2**31 - 1) + b"\x00" * 64)
    over.wait()


def answer_byte_by_byte(client: socket.socket, over: threading.Event) -> None:
    """Something comes all the time, and never an answer."""
    client.recv(65536)
    client.sendall(struct.pack(">II", 0x80010002, 1 << 20))
    while not over.wait(0.02):
        client.sendall(b"x")


@contextmanager
def open_gateway(answer: Answer) -> Iterator[int]:
    """The port of a gateway that answers every connection like this."""
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.05)
        thread = threading.Thread(target=_serve, args=(server, answer, over))
        thread.start()
        try:
            yield int(server.getsockname()[1])
        finally:
            over.set()
            thread.join()


def _serve(server: socket.socket, answer: Answer, over: threading.Event) -> None:
    threads = []
    while not over.is_set():
        try:
            client, _ = server.accept()
        except TimeoutError:
            continue
        threads.append(threading.Thread(target=_answer_client, args=(client, answer, over)))
        threads[-1].start()
    for thread in threads:
        thread.join()


def _answer_client(client: socket.socket, answer: Answer, over: threading.Event) -> None:
    with client:
        try:
            answer(client, over)
        except (BrokenPipeError, ConnectionResetError):
            return  # the other side has had enough
