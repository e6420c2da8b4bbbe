"""Who runs the verbs of a store for a process, and how it is reached.

    OwnerHost   a store in a directory: the process that has it open, by its socket
    NodeHost    a database on HBase: this very process, by a node of its own

A host holds an address only, so it pickles and goes to any process: the driver, a planner, a task.
The verbs are the same, so the jobs are too. They are run by a layer above this one, which a
`NodeHost` therefore finds by its name: in a planner or a task of Spark nobody above is there to
pass it in.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from belvedere.errors import Unsupported
from belvedere.kv.hbase.url import is_hbase_url
from belvedere.remote.client import OwnerConnection
from belvedere.remote.frames import Request
from belvedere.txn.contracts import Reader

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

NODE_VERBS = "belvedere.interfaces.node_verbs"

Answer = tuple[Any, tuple[pa.Schema, Iterator[pa.RecordBatch]] | None]
"""The value of a verb, and the rows that it streams, if it does."""


class VerbConnection(Protocol):
    """Asks for one verb after the other."""

    def ask_owner(self, request: Request) -> Any:
        """The answer of a verb that gives a value."""

    def call_verb(self, request: Request) -> Answer: ...

    def put(self, request: Request, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Any:
        """Send a request with rows; returns its value."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class NodeVerbs(Protocol):
    """What the module NODE_VERBS offers."""

    def connect_node(self, url: str) -> VerbConnection: ...

    def open_reader(self, url: str, position: int) -> AbstractContextManager[Reader]: ...


class VerbHost(Protocol):
    """Implemented by OwnerHost and NodeHost."""

    @property
    def url(self) -> str:
        """What names the store to another process."""

    @property
    def directory(self) -> Path | None:
        """The directory of the store; None: it has none."""

    def connect(self) -> VerbConnection: ...


@dataclass(frozen=True, slots=True)
class OwnerHost:
    """The process that has the store in `directory` open, on this machine."""

    directory: Path

    @property
    def url(self) -> str:
        return str(self.directory)

    def connect(self) -> VerbConnection:
        return OwnerConnection(self.directory)


@dataclass(frozen=True, slots=True)
class NodeHost:
    """This process, whichever it is: it talks to HBase itself."""

    url: str

    @property
    def directory(self) -> None:
        return None

    def connect(self) -> VerbConnection:
        return _load_node_verbs().connect_node(self.url)

    def open_reader(self, position: int) -> AbstractContextManager[Reader]:
        """A reader of all that is stored, as of a position."""
        return _load_node_verbs().open_reader(self.url, position)


def find_verb_host(url: str) -> VerbHost:
    """Who runs the verbs of the store with this URL."""
    if is_hbase_url(url):
        return NodeHost(url)
    if "://" in url or url == ":memory:":
        raise Unsupported(
            "pipeline over a store that has no directory",
            hint="use the path of a store on this machine, or a database on HBase",
            database=url,
        )
    return OwnerHost(Path(url).resolve())


def _load_node_verbs() -> NodeVerbs:
    found: Any = importlib.import_module(NODE_VERBS)
    loaded: NodeVerbs = found
    return loaded
