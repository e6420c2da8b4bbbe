"""The jars of HBase: fetched by Maven once, kept outside the checkout under a hash of the pom.

Maven missing: installed with apt where that is possible, otherwise one clear message.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

POM = Path(__file__).with_name("pom.xml")
COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
FETCH_SECONDS_MAX = 900


class MissingTool(Exception):
    """Java or Maven is not here, and cannot be installed by us."""


def cache_directory() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "belvedere" / "hbase"


def provide_jars() -> Path:
    """The directory of the jars; fetches them when they are not there."""
    require_tool("java", "openjdk-17-jre-headless", "default-jre-headless")
    wanted = cache_directory() / hashlib.sha256(POM.read_bytes()).hexdigest()[:16]
    if wanted.is_dir():
        return wanted
    wanted.parent.mkdir(parents=True, exist_ok=True)
    with (wanted.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not wanted.is_dir():
            _fetch_jars(wanted)
    return wanted


def _fetch_jars(wanted: Path) -> None:
    require_tool("mvn", "maven")
    with tempfile.TemporaryDirectory(dir=wanted.parent) as scratch:
        lib = Path(scratch) / "lib"
        pom = shutil.copy(POM, scratch)
        command = ["mvn", "-B", "-ntp", "-q", "-f", str(pom), COPY_GOAL]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={lib}"]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, timeout=FETCH_SECONDS_MAX
        )
        if done.returncode or not lib.is_dir():
            raise MissingTool(f"maven could not fetch HBase:\n{done.stdout}{done.stderr}")
        lib.rename(wanted)


def require_tool(name: str, *packages: str) -> None:
    """Make sure that a program is there. Of the packages the first that can be installed is."""
    for package in packages:
        if shutil.which(name):
            return
        if os.getuid() == 0 and shutil.which("apt-get"):
            _install_package(package)
    if not shutil.which(name):
        raise MissingTool(f"{name} is missing; HBase needs it: install {packages[0]}")


def _install_package(package: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (["update"], ["install", "-y", "--no-install-recommends", package]):
        subprocess.run(
            ["apt-get", "-q", *command], check=False, capture_output=True, env=environment
        )
