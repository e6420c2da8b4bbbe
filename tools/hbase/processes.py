"""JVMs: started with their output in a file, watched while they start, killed by id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

POLL_SECONDS = 0.1
_children: dict[int, subprocess.Popen[bytes]] = {}
"""What this process has started and not yet killed, so that it can be waited for."""


class StartFailed(Exception):
    """A process ended, or was not ready in time; says where its log is."""


def choose_free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def accepts(port: int) -> bool:
    """Whether something listens there."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def start_process(
    command: Sequence[str], log: Path, output: Path | None = None, *, detached: bool
) -> subprocess.Popen[bytes]:
    """Start a process with its messages in `log`, and what it prints in `output`, where that is
    another file. Detached, it outlives this process."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as messages, (output or log).open("ab") as printed:
        child = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=messages,
            cwd=log.parent,
            start_new_session=detached,
        )
    _children[child.pid] = child
    return child


def wait_until(
    is_ready: Callable[[], bool],
    processes: Sequence[subprocess.Popen[bytes]],
    log: Path,
    seconds_max: float,
) -> None:
    deadline = time.monotonic() + seconds_max
    while not is_ready():
        if any(process.poll() is not None for process in processes):
            raise StartFailed(f"HBase ended while it started; see {log}")
        if time.monotonic() > deadline:
            raise StartFailed(f"HBase was not ready after {seconds_max:.0f} s; see {log}")
        time.sleep(POLL_SECONDS)


def is_running(pid: int) -> bool:
    """Whether a process is there and is a JVM, not a later process with the same id."""
    try:
        return b"java" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def has_ended(pid: int, seconds_max: float) -> bool:
    """Wait for a JVM to end; False when it does not in that time."""
    deadline, child = time.monotonic() + seconds_max, _children.get(pid)
    while is_running(pid) and time.monotonic() < deadline:
        if child is not None:
            child.poll()
        time.sleep(POLL_SECONDS)
    return not is_running(pid)


def kill_process(pid: int) -> None:
    """Kill a JVM and wait until it is gone. What HBase acknowledged is in its files by then."""
    if is_running(pid):
        os.kill(pid, signal.SIGKILL)
    child = _children.pop(pid, None)
    if child is not None:
        child.wait()
    while is_running(pid):
        time.sleep(0.01)
