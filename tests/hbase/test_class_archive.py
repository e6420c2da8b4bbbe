"""Later starts of HBase map the classes that an earlier one has left, and only fitting ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.hbase.class_archive import choose_scratch, keep_archive, locate_archive
from tools.hbase.settings import JAVA_FLAGS, java_command


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    directory = tmp_path / "jars"
    directory.mkdir()
    for name in ("b.jar", "a.jar"):
        (directory / name).touch()
    return directory


def record_classes(jars: Path) -> Path:
    """Do what an HBase does that was started to record its classes, and was stopped."""
    scratch = choose_scratch(locate_archive(jars, JAVA_FLAGS))
    assert scratch is not None
    assert f"-XX:ArchiveClassesAtExit={scratch}" in java_command(
        256, jars, jars.parent / "conf", "Main", recording=scratch
    )
    scratch.touch()
    keep_archive(scratch)
    return locate_archive(jars, JAVA_FLAGS)


def test_what_one_start_recorded_the_next_one_maps(jars: Path) -> None:
    archive = record_classes(jars)
    assert choose_scratch(archive) is None
    for conf, heap_mb in (("one", 256), ("other", 512)):
        command = java_command(heap_mb, jars, jars.parent / conf, "Main", "start")
        assert f"-XX:SharedArchiveFile={archive}" in command


def test_settings_are_last_in_the_class_path(jars: Path) -> None:
    command = java_command(256, jars, jars.parent / "conf", "Main")
    classpath = command[command.index("-cp") + 1].split(":")
    assert [Path(entry).name for entry in classpath[:2]] == ["a.jar", "b.jar"]
    assert classpath[-1] == str(jars.parent / "conf")


def test_classes_of_other_jars_or_flags_are_not_mapped(jars: Path) -> None:
    archive = record_classes(jars)
    assert locate_archive(jars, (*JAVA_FLAGS, "-Xint")) != archive
    (jars / "c.jar").touch()
    assert locate_archive(jars, JAVA_FLAGS) != archive
    assert not any("SharedArchive" in flag for flag in java_command(256, jars, jars, "Main"))


def test_an_hbase_that_was_killed_before_it_wrote_leaves_nothing(jars: Path) -> None:
    scratch = choose_scratch(locate_archive(jars, JAVA_FLAGS))
    assert scratch is not None
    keep_archive(scratch)
    assert not locate_archive(jars, JAVA_FLAGS).exists()
