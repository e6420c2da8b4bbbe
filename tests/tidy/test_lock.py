"""The lock file covers the project, pins by hash, and names no place that packages come from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPOSITORY = Path(__file__).resolve().parents[2]
LOCK = (REPOSITORY / "requirements.lock").read_text()
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]


def locked() -> dict[str, list[str]]:
    versions: dict[str, list[str]] = {}
    for name, version in re.findall(r"^([\w.-]+)==(\S+)", LOCK, re.MULTILINE):
        versions.setdefault(canonicalize_name(name), []).append(version)
    return versions


def wanted() -> list[Requirement]:
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    return [Requirement(text) for group in groups for text in group]


def test_lock_satisfies_every_requirement_of_the_project() -> None:
    versions = locked()
    for requirement in wanted():
        pinned = versions.get(canonicalize_name(requirement.name), [])
        assert pinned, f"{requirement} is not locked: run tools/lock.sh"
        for version in pinned:
            assert requirement.specifier.contains(version), f"{requirement}: {version} is locked"


def test_every_locked_package_has_a_hash() -> None:
    for block in re.split(r"\n(?=\S)", LOCK):
        if not block.startswith("#"):
            assert re.search(r"--hash=sha256:[0-9a-f]{64}", block), block


def test_lock_names_no_index_and_no_path() -> None:
    for line in LOCK.splitlines():
        assert re.fullmatch(
            r"#.*|[\w.-]+==[\w.+]+( ; [^/:]+)? \\|    --hash=sha256:[0-9a-f]{64}( \\)?", line
        ), line


def test_both_builds_of_the_parser_have_one_version() -> None:
    assert locked()["sqlglot"] == locked()["sqlglotc"]
