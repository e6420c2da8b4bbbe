"""Children: everything that opens a store runs in a process of its own.

The parent never opens one, so it may fork: a child begins with everything imported, in a
millisecond. (A process in which RocksDB has run must not fork: its threads do not come along. The
guard in `forking` says so at once.)
"""

from __future__ import annotations

import os
import pickle
import select
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from belvedere import failpoints
from tests.mutations.registry import mutate
from tests.simulation.crash.forking import GUARD

T = TypeVar("T")
SECONDS_MAX = 240.0


class ChildFailed(Exception):
    """A child ended in a way nobody asked for."""


class Child:
    """A forked process that runs `function`, with a mutation and failpoints of its own beside those
    of its parent; its error output goes to `output`."""

    def __init__(
        self,
        function: Callable[[], Any],
        output: Path,
        *,
        points: str = "",
        mutation: str = "",
    ) -> None:
        GUARD.forking()
        sys.stdout.flush()
        reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(reading)
            _live(function, output, points, mutation, writing)
        os.close(writing)
        self._reading = reading
        self._output = output

    def wait(self, seconds: float = SECONDS_MAX) -> tuple[int, bytes]:
        """(status as of os.waitpid, what the function returned, pickled); a child over its time is
        killed and is a failure."""
        answer, deadline = b"", time.monotonic() + seconds
        while True:
            left = deadline - time.monotonic()
            ready, _, _ = select.select([self._reading], [], [], max(left, 0))
            if not ready:
                self.kill()
                os.close(self._reading)
                os.waitpid(self.pid, 0)
                raise ChildFailed(f"the child did not end in {seconds} s\n{self.errors()}")
            more = os.read(self._reading, 1 << 20)
            if not more:
                break
            answer += more
        os.close(self._reading)
        return os.waitpid(self.pid, 0)[1], answer

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)

    def errors(self) -> str:
        """The end of what it said."""
        text = self._output.read_text(errors="replace") if self._output.exists() else ""
        return text[-1200:]


def call(function: Callable[[], T], output: Path, *, points: str = "", mutation: str = "") -> T:
    """Run `function` in a child and give back what it returned."""
    child = Child(function, output, points=points, mutation=mutation)
    status, answer = child.wait()
    if status != 0 or not answer:
        raise ChildFailed(f"the child ended with status {status}\n{child.errors()}")
    result: T = pickle.loads(answer)
    return result


def killed(status: int) -> bool:
    return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL


def _live(
    function: Callable[[], Any], output: Path, points: str, mutation: str, writing: int
) -> None:
    """The child's whole life."""
    GUARD.born()
    code = 1
    try:
        errors = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(errors, 2)
        mutate(mutation)
        os.environ["BELVEDERE_FAILPOINTS"] = points
        failpoints.arm_from_environment()
        result = function()
        os.write(writing, pickle.dumps(result))
        code = 0
    except BaseException:  # noqa: BLE001 the parent judges by the exit code
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)
