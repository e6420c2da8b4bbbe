"""Gateways that are not there, or answer garbage, or nothing: one clear error, within the
deadline."""

from __future__ import annotations

import os
import time

import pytest

from belvedere.errors import Unavailable
from belvedere.kv.cell import ReplyLost
from belvedere.kv.hbase.exchange import Exchange
from belvedere.kv.hbase.requests import GatewayCall
from belvedere.kv.hbase.url import parse_url
from tests.kv.hbase import gateways

ASK = GatewayCall("listNamespaces", {}, list, repeatable=True)
CHANGE = GatewayCall("deleteNamespace", {"name": "x"}, bool)
SECONDS_MAX = 20.0
"""Only to tell a hang from an answer; the deadline of the requests is a third of a second."""

BAD = (
    gateways.close_at_once,
    gateways.answer_nothing,
    gateways.answer_like_a_web_server,
    gateways.answer_noise,
    gateways.announce_far_too_much,
    gateways.answer_byte_by_byte,
)


def open_exchange(*ports: int) -> Exchange:
    hosts = ",".join(f"127.0.0.1:{port}" for port in ports)
    return Exchange(parse_url(f"hbase://{hosts}/shop?timeout_ms=300"))


@pytest.mark.parametrize("answer", BAD, ids=lambda answer: answer.__name__)
def test_a_bad_gateway_is_an_error_within_the_deadline(answer: gateways.Answer) -> None:
    with gateways.open_gateway(answer) as port:
        exchange = open_exchange(port)
        for call in (ASK, CHANGE):
            started = time.monotonic()
            with pytest.raises(ReplyLost) as lost:
                exchange.perform_call(call)
            assert time.monotonic() - started < SECONDS_MAX
            assert str(port) in str(lost.value)
        with pytest.raises(ReplyLost):
            exchange.perform_calls([ASK, CHANGE, CHANGE])
        exchange.close()


def test_a_gateway_that_is_not_there_is_named() -> None:
    with gateways.open_gateway(gateways.answer_nothing) as port:
        pass
    exchange = open_exchange(port)
    with pytest.raises(Unavailable) as missing:
        exchange.perform_call(ASK)
    assert missing.value.sqlstate == "08001"
    assert f"127.0.0.1:{port}" in str(missing.value)
    with pytest.raises(Unavailable):
        exchange.perform_calls([CHANGE, CHANGE])


def test_connections_stay_below_their_limit_and_are_closed() -> None:
    with gateways.open_gateway(gateways.answer_nothing) as port:
        exchange = Exchange(parse_url(f"hbase://127.0.0.1:{port}/shop?connections=2"))
        pool, deadline = exchange.pool, exchange.pool.clock() + 5.0
        first, second = pool.try_acquire(deadline), pool.try_acquire(deadline)
        assert first is not None
        assert second is not None
        assert pool.try_acquire(deadline) is None
        with pytest.raises(Unavailable):
            pool.acquire_connection(pool.clock())
        pool.release_connection(first)
        assert pool.try_acquire(deadline) is first
        exchange.close()
        for held in (first, second):
            pool.release_connection(held)
            assert held.is_closed
        with pytest.raises(Unavailable):
            pool.try_acquire(deadline)


def test_a_forked_child_is_refused() -> None:
    with gateways.open_gateway(gateways.answer_nothing) as port:
        exchange = open_exchange(port)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                exchange.perform_call(ASK)
            except Unavailable as refused:
                os.write(writing, refused.sqlstate.encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        assert os.read(reading, 5) == b"08003"
        os.close(reading)
        os.close(writing)
        exchange.close()
