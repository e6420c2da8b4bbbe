"""The classes of HBase as the JVM keeps them in memory: read and verified once, mapped afterwards.

Half of a start is reading some 10,000 classes. The JVM can write what it has loaded into a file as
it ends, and map that file the next time; it takes the file only for the same Java, the same jars in
the same order and the same flags. So the name of the file is a hash of these, and every HBase has
one class path, with its directory of settings last: of a class path only what comes before the last
jar that was read from has to be the same.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Sequence
from pathlib import Path

from py4j.java_gateway import find_jar_path


def build_classpath(jars: Path, settings: Path) -> str:
    """The jars of HBase and of py4j, then the directory of settings."""
    return os.pathsep.join([*_list_jars(jars), str(settings)])


def locate_archive(jars: Path, flags: Sequence[str]) -> Path:
    """Where the classes of such a JVM are, or will be, kept."""
    java = Path(os.path.realpath(shutil.which("java") or "java"))
    made = java.stat()
    known = repr((str(java), made.st_mtime_ns, made.st_size, _list_jars(jars), tuple(flags)))
    return jars / f"{hashlib.sha256(known.encode()).hexdigest()[:16]}.jsa"


def _list_jars(jars: Path) -> list[str]:
    py4j = _keep_py4j(jars)
    others = (str(jar) for jar in jars.glob("*.jar") if not jar.name.startswith("py4j"))
    return [*sorted(others), str(py4j)]


def _keep_py4j(jars: Path) -> Path:
    """A copy of py4j's jar beside the others: its own path differs between virtual environments."""
    source = Path(find_jar_path())
    kept = jars / source.name
    if not kept.exists():
        scratch = kept.with_suffix(f".{os.getpid()}")
        shutil.copy(source, scratch)
        scratch.rename(kept)
    return kept


def choose_scratch(archive: Path) -> Path | None:
    """Where a JVM may write this archive as it ends; None when there is one."""
    return None if archive.exists() else archive.with_suffix(f".{secrets.token_hex(4)}")


def keep_archive(scratch: Path) -> None:
    """Let others use what a JVM that has ended wrote there."""
    if scratch.exists():
        scratch.rename(scratch.with_suffix(".jsa"))
