"""Store images for the tests of damage."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from rocksdict import Options, Rdict, WriteBatch

from tests.kv.damage import BATCHES, logs, pairs
from tests.kv.stores import open_rocks


@pytest.fixture(scope="module")
def one_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a store as a kill leaves them: everything in one log."""
    home = tmp_path_factory.mktemp("one_log")
    store = open_rocks(home / "live")
    for number in range(BATCHES):
        store.write(pairs(number))
    shutil.copytree(home / "live", home / "image")
    store.close()
    return home / "image"


@pytest.fixture(scope="module")
def many_logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, killed while several full write buffers wait to be flushed: several logs."""
    home = tmp_path_factory.mktemp("many_logs")
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(64 * 1024)
    options.set_max_write_buffer_number(30)
    options.set_min_write_buffer_number_to_merge(29)
    database = Rdict(str(home / "live"), options)
    for number in range(BATCHES):
        batch = WriteBatch(raw_mode=True)
        for key, value in pairs(number):
            batch[key] = value * 3
        database.write(batch)
    shutil.copytree(home / "live", home / "image")
    database.close()
    assert len(logs(home / "image")) >= 3
    return home / "image"


@pytest.fixture
def store_directory(one_log: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(one_log, tmp_path / "store"))


@pytest.fixture
def many_directory(many_logs: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(many_logs, tmp_path / "many"))
