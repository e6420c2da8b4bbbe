"""Tokens: what a store accepts of what it issued, and nothing else."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belvedere.database import Database, restore_backup
from belvedere.errors import InvalidInput
from belvedere.txn.token import PositionToken, issue_token, verify_token
from tests.txn.conftest import open_engine
from tests.txn.shop import create_shop, get, put

SECRET = b"s" * 32
NOW = PositionToken(b"i" * 16, 7, 100)


def refused(text: str, expected: PositionToken = NOW, secret: bytes = SECRET) -> str:
    with pytest.raises(InvalidInput) as caught:
        verify_token(text, expected, secret)
    assert caught.value.sqlstate == "22023"
    return caught.value.message


@given(st.integers(0, 100))
def test_what_was_issued_is_accepted(position: int) -> None:
    assert (
        verify_token(issue_token(NOW._replace(position=position), SECRET), NOW, SECRET) == position
    )


def test_tokens_of_elsewhere_are_refused_each_by_its_reason() -> None:
    assert (
        refused(issue_token(NOW._replace(store_id=b"j" * 16), SECRET)) == "token of another store"
    )
    assert (
        refused(issue_token(NOW._replace(incarnation=6), SECRET)) == "token of another incarnation"
    )
    assert (
        refused(issue_token(NOW._replace(incarnation=8), SECRET)) == "token of another incarnation"
    )
    assert refused(issue_token(NOW._replace(position=101), SECRET)) == "token is ahead of the log"
    assert refused(issue_token(NOW, b"t" * 32)) == "token was not issued by this store"


@given(st.integers(0, 39), st.integers(1, 255))
def test_a_token_with_any_byte_changed_is_refused(at: int, by: int) -> None:
    data = bytearray(base64.urlsafe_b64decode(issue_token(NOW, SECRET)))
    data[at] ^= by
    refused(base64.urlsafe_b64encode(bytes(data)).decode())


@given(st.text(max_size=80))
def test_text_that_is_no_token_is_refused(text: str) -> None:
    refused(text)


def test_a_token_carries_a_session_to_another_connection(directory_shop: Database) -> None:
    committed = put(directory_shop, "product", (1, "x"))
    token = directory_shop.position_to_token(committed.position)
    with directory_shop.begin(at_least=directory_shop.token_to_position(token)) as elsewhere:
        assert get(elsewhere, "product", 1) == (1, "x")
    assert directory_shop.position_to_token(directory_shop.position) == token


def test_a_token_survives_a_restart_but_not_a_restore(tmp_path: Path) -> None:
    with open_engine("rocksdb-full", tmp_path) as database:
        create_shop(database)
        token = database.position_to_token(database.position)
        database.back_up(tmp_path / "backup")
    with open_engine("rocksdb-full", tmp_path) as database:
        assert database.token_to_position(token) == database.position
    restore_backup(tmp_path / "backup", tmp_path / "restored" / "store")
    with (
        open_engine("rocksdb-full", tmp_path / "restored") as restored,
        pytest.raises(InvalidInput, match="another incarnation"),
    ):
        restored.token_to_position(token)
