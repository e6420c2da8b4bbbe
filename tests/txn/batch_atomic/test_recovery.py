"""Opening a store: whole, or not at all, and always with the reason."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from belvedere.catalog.definitions import ColumnDefinition, TableDefinition
from belvedere.codec.keyspace import log_key
from belvedere.config import Config, Durability
from belvedere.database import Database
from belvedere.errors import Corruption, InvalidInput, Unavailable, Unsupported
from belvedere.kv.rocksdb import RocksStore
from belvedere.txn.batch_atomic import directory as files
from belvedere.txn.batch_atomic.anchor import Anchor, AnchorState
from belvedere.txn.transaction import table_rows
from belvedere.types import BIGINT

NUMBERS = TableDefinition("numbers", (ColumnDefinition("n", BIGINT),), ("n",))
OFF = Config(durability=Durability.OFF)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store"


def make(path: Path, *numbers: int, config: Config | None = None) -> str:
    """Write the numbers, one commit each, and close; a token of the last one."""
    with Database.open(path, config) as database:
        if database.catalog.find_relation("numbers") is None:
            database.change_schema(lambda edit: edit.create_table(NUMBERS))
        for number in numbers:
            insert(database, number)
        return database.position_to_token(database.position)


def insert(database: Database, number: int) -> int:
    with database.begin() as transaction:
        table_rows.insert_row(transaction, database.get_compiled_table("numbers"), (number,))
        return transaction.commit().position


def numbers(path: Path, **options: bool) -> list[int]:
    with Database.open(path, **options) as database:
        return read(database)


def read(database: Database) -> list[int]:
    table = database.get_compiled_table("numbers")
    with database.open_newest_reader() as reader:
        return [table.decode(v)[0] for b in reader.scan(table.start, table.end) for _, v in b]


def incarnation(path: Path) -> int:
    with Database.open(path) as database:
        return database.incarnation


def kill(path: Path, *more: int, config: str = "Config()") -> None:
    """Write more numbers in a process that then dies without closing."""
    code = f"""
import os, signal
from pathlib import Path
from belvedere.config import Config, Durability
from belvedere.database import Database
from tests.txn.batch_atomic.test_recovery import insert
database = Database.open(Path({str(path)!r}), {config})
for number in {more}:
    insert(database, number)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False,
        env={"PYTHONPATH": ":".join(sys.path)},
    )  # fmt: skip
    assert done.returncode == -9, done.stderr


def edit_engine(path: Path, change: Callable[[RocksStore], object]) -> None:
    engine = RocksStore.open(path / "data", create=False)
    change(engine)
    engine.close()


# -- making a store ---------------------------------------------------------------------------


def test_store_holds_what_was_committed(path: Path) -> None:
    make(path, 1, 2)
    make(path, 3)
    assert numbers(path) == [1, 2, 3]


@pytest.mark.parametrize("names", [[], ["LOCK"], ["LOCK", "BELVEDERE.new"],
                                   ["LOCK", "BELVEDERE.new", "data"],
                                   ["LOCK", "BELVEDERE.new", "data", "anchor"]])  # fmt: skip
def test_creation_that_was_cut_short_is_done_again(path: Path, names: list[str]) -> None:
    path.mkdir()
    for name in names:
        if name == "data":
            (path / name).mkdir()
        else:
            (path / name).touch()
    make(path, 1)
    assert numbers(path) == [1]


def test_directory_of_something_else_is_refused_and_left_alone(path: Path) -> None:
    path.mkdir()
    (path / "letter.txt").write_text("dear reader")
    with pytest.raises(InvalidInput, match="not a belvedere store"):
        Database.open(path)
    assert [entry.name for entry in path.iterdir()] == ["letter.txt"]


def test_second_opener_is_told_who_has_it(path: Path) -> None:
    with Database.open(path), pytest.raises(Unavailable) as refused:
        Database.open(path)
    assert refused.value.sqlstate == "55006"
    assert "pid" in refused.value.facts


def test_newer_format_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(files, "STORE_FORMAT", files.STORE_FORMAT + 1)
        make(path, 1)
    with pytest.raises(Unsupported, match="newer"):
        Database.open(path)


# -- damage -----------------------------------------------------------------------------------


def cut_log(path: Path) -> None:
    edit_engine(path, lambda engine: engine.write([(log_key(4), None), (log_key(3), None)]))


def lose_identity(path: Path) -> None:
    (path / "BELVEDERE").unlink()


def damage_identity(path: Path) -> None:
    data = (path / "BELVEDERE").read_bytes()
    (path / "BELVEDERE").write_bytes(data.replace(b'"format":1', b'"format":0'))


def lose_anchor(path: Path) -> None:
    (path / "anchor").unlink()


def damage_anchor(path: Path) -> None:
    (path / "anchor").write_bytes(bytes(1024))


def take_other_anchor(path: Path) -> None:
    make(path.with_name("other"), 7, 8, 9)
    shutil.copyfile(path.with_name("other") / "anchor", path / "anchor")


DAMAGE = {
    cut_log: ("acknowledged commits are missing from the log", 4, 2),
    lose_identity: ("the identity file is missing", 4, 4),
    damage_identity: ("the identity file is damaged", 4, 4),
    lose_anchor: ("the anchor file is missing", "unknown", 4),
    damage_anchor: ("the anchor file is damaged", "unknown", 4),
    take_other_anchor: ("the anchor belongs to another store", 4, 4),
}


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_damage_is_refused_with_what_was_acknowledged_and_found(
    path: Path, damage: Callable[[Path], None]
) -> None:
    make(path, 1, 2, 3)
    damage(path)
    message, acknowledged, found = DAMAGE[damage]
    for _ in range(2):  # the refusal itself changes nothing
        with pytest.raises(Corruption) as refused:
            Database.open(path, create=False)
        assert refused.value.message == message
        assert refused.value.facts["acknowledged_through"] == acknowledged
        assert refused.value.facts["found"] == found
        assert "--accept-data-loss" in (refused.value.hint or "")


@pytest.mark.parametrize("damage", DAMAGE, ids=lambda damage: damage.__name__)
def test_accepted_damage_goes_on_as_a_new_incarnation(
    path: Path, damage: Callable[[Path], None]
) -> None:
    token = make(path, 1, 2, 3)
    before = incarnation(path)
    damage(path)
    with Database.open(path, accept_data_loss=True) as database:
        assert database.incarnation > before
        with pytest.raises(InvalidInput, match="token"):
            database.token_to_position(token)
        assert read(database) == [1, 2, 3]
        insert(database, 4)
        after = database.incarnation
    assert numbers(path) == [1, 2, 3, 4]
    assert incarnation(path) == after


def test_damaged_file_of_the_engine_is_refused_with_what_was_acknowledged(path: Path) -> None:
    """Such damage cannot be accepted, and so nobody is told to."""
    make(path, *range(1, 400))
    make(path, 400)
    file = min((path / "data").glob("*.sst"))  # the older one
    data = bytearray(file.read_bytes())
    data[10] ^= 0xFF
    file.write_bytes(data)
    for accepted in (False, True):
        with pytest.raises(Corruption) as refused:
            Database.open(path, create=False, accept_data_loss=accepted)
        assert refused.value.facts["acknowledged_through"] == 401
        assert refused.value.facts["found"] == "unreadable"
        assert "checksum" in (refused.value.detail or "")
    assert "accept-data-loss" not in (refused.value.hint or "")


def test_hole_in_the_log_is_refused_even_when_loss_is_accepted(path: Path) -> None:
    make(path, 1, 2, 3)
    edit_engine(path, lambda engine: engine.write([(log_key(2), None)]))
    for accept in (False, True):
        with pytest.raises(Corruption, match="the log has a hole"):
            Database.open(path, accept_data_loss=accept)


def test_log_that_goes_on_after_a_clean_close_is_refused(path: Path) -> None:
    make(path, 1)
    anchor = (path / "anchor").read_bytes()
    make(path, 2)
    (path / "anchor").write_bytes(anchor)
    with pytest.raises(Corruption, match="goes on after the store was closed"):
        Database.open(path)


def test_other_records_at_the_same_positions_are_refused(path: Path) -> None:
    make(path, 1)
    shutil.copytree(path, path.with_name("other"))
    make(path, 2)
    make(path.with_name("other"), 3)
    shutil.rmtree(path / "data")
    shutil.copytree(path.with_name("other") / "data", path / "data")
    with pytest.raises(Corruption, match="chain is broken"):
        Database.open(path)


def test_record_longer_than_it_says_is_refused(path: Path) -> None:
    make(path, 1)
    edit_engine(
        path, lambda engine: engine.write([(log_key(2), (engine.get(log_key(2)) or b"") + b"x")])
    )
    with pytest.raises(Corruption, match="the log is damaged") as refused:
        Database.open(path)
    assert refused.value.facts["acknowledged_through"] == 2


# -- incarnations and outcomes ----------------------------------------------------------------


def test_clean_close_keeps_the_incarnation(path: Path) -> None:
    make(path, 1)
    before = incarnation(path)
    make(path, 2, config=OFF)
    assert incarnation(path) == before


def test_kill_keeps_everything_and_with_full_durability_the_incarnation(path: Path) -> None:
    make(path, 1)
    before = incarnation(path)
    kill(path, 2, 3)
    assert incarnation(path) == before
    assert numbers(path) == [1, 2, 3]


def test_kill_without_durability_begins_a_new_incarnation(path: Path) -> None:
    token = make(path, 1)
    before = incarnation(path)
    kill(path, 2, config="Config(durability=Durability.OFF)")
    with Database.open(path) as database:
        assert database.incarnation > before
        with pytest.raises(InvalidInput, match="incarnation"):
            database.token_to_position(token)
        assert read(database) == [1, 2]


def test_older_anchor_does_not_bring_an_incarnation_back(path: Path) -> None:
    make(path, 1)
    anchor = Anchor.open(path / "anchor")
    old = anchor.mark
    anchor.close()
    kill(path, config="Config(durability=Durability.OFF)")
    newer = incarnation(path)
    anchor = Anchor.open(path / "anchor")
    anchor.write(incarnation=old.incarnation, position=2, hash_=old.hash, state=AnchorState.OPEN)
    anchor.close()
    assert incarnation(path) == newer


def test_outcome_by_transaction_id_is_known_after_a_restart(path: Path) -> None:
    make(path)
    with Database.open(path) as database:
        done, undone = database.begin(), database.begin()
        table_rows.insert_row(done, database.get_compiled_table("numbers"), (1,))
        table_rows.insert_row(undone, database.get_compiled_table("numbers"), (2,))
        position = done.commit().position
        undone.rollback()
    with Database.open(path) as database:
        assert database.outcome(done.id) == position
        assert database.outcome(undone.id) is None


def test_a_store_whose_engine_cannot_be_closed_in_order_is_given_back(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As RocksDB answers when its log could not be written."""
    make(path, 1)
    database, close = Database.open(path), RocksStore.close

    def closed_with_an_error(self: RocksStore) -> None:
        close(self)
        raise Unavailable("writer has previous error")

    monkeypatch.setattr(RocksStore, "close", closed_with_an_error)
    with pytest.raises(Unavailable, match="previous error"):
        database.close()
    monkeypatch.undo()
    assert numbers(path) == [1]
