"""URLs of databases on HBase."""

from __future__ import annotations

import pytest

from belvedere.errors import InvalidInput
from belvedere.kv.hbase.url import GatewayAddress, parse_url


def test_a_url_names_gateways_a_namespace_and_options() -> None:
    found = parse_url("hbase://a:1,b,[::1]:3/shop_1?connections=3&timeout_ms=900")
    assert found.gateways == (
        GatewayAddress("a", 1),
        GatewayAddress("b", 9090),
        GatewayAddress("::1", 3),
    )
    assert (found.namespace, found.connections, found.timeout_seconds) == ("shop_1", 3, 0.9)


@pytest.mark.parametrize(
    "text",
    [
        "hbase://",
        "hbase://a",
        "hbase://a/",
        "hbase:///shop",
        "hbase://a:1,/shop",
        "hbase://a:x/shop",
        "hbase://a:0/shop",
        "hbase://a:65536/shop",
        "hbase://a:²/shop",
        "hbase://a:1,a:1/shop",
        "hbase://a/shop/more",
        "hbase://a/shop-1",
        "hbase://a/hbase",
        "hbase://a/default",
        "hbase://user@a/shop",
        "hbase://a/shop#here",
        "hbase://a/shop?speed=9",
        "hbase://a/shop?connections=0",
        "hbase://a/shop?timeout_ms=",
        "hbase://[::1/shop",
    ],
)
def test_what_is_no_url_is_refused_with_the_reason(text: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_url(text)
    assert refused.value.sqlstate == "22023"
    assert refused.value.detail
