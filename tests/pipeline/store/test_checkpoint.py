"""Checkpoints of jobs: gone at the end, and those of dead drivers with the next job."""

from __future__ import annotations

from pathlib import Path

from belvedere.interfaces.dbapi import Connection
from belvedere.pipeline.store.checkpoint import (
    ensure_jobs_directory,
    hold_temporary_checkpoint,
    remove_checkpoints_of_ended_jobs,
)
from belvedere.pipeline.store.client import Store
from tests.pipeline.conftest import in_another_process

KILLED = """
import os
from belvedere.pipeline.store.checkpoint import hold_temporary_checkpoint
from belvedere.pipeline.store.client import Store
with hold_temporary_checkpoint(Store.from_url({shop!r})) as made:
    print(made.directory, flush=True)
    os._exit(0)
"""


def directories(store: Store) -> list[Path]:
    return sorted(ensure_jobs_directory(store).glob("checkpoint-*"))


def test_a_checkpoint_is_gone_at_the_end(shop: Path, connection: Connection) -> None:
    store = Store.from_url(str(shop))
    with hold_temporary_checkpoint(store) as made:
        assert made.directory.is_dir()
        assert made.position == store.position()
    assert not directories(store)


def test_what_a_killed_driver_left_goes_with_the_next_job_and_what_a_living_one_has_stays(
    shop: Path, connection: Connection
) -> None:
    store = Store.from_url(str(shop))
    left = Path(in_another_process(KILLED.format(shop=str(shop))).strip())
    assert left.is_dir(), "nobody was there to remove it"
    with hold_temporary_checkpoint(store) as first:
        assert not left.exists()
        assert directories(store) == [first.directory.parent]
        with hold_temporary_checkpoint(store) as second:
            remove_checkpoints_of_ended_jobs(store)
            assert first.directory.is_dir()
            assert second.directory.is_dir()
    assert not directories(store)
