"""A connection to a store that another process has open, for the shell."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.errors import Error, Unavailable
from belvedere.interfaces.exceptions import translated
from belvedere.interfaces.verbs.wire import fields_of, rows_of
from belvedere.pipeline.store import Store
from belvedere.remote.client import Conversation
from belvedere.remote.frames import Request
from belvedere.session.notices import Notices
from belvedere.session.result import Result


class RemoteState:
    """The transaction state of the session, as of the owner's last reply."""

    def __init__(self) -> None:
        self.failed = False
        self.open: object | None = None

    def told(self, state: str) -> None:
        self.failed = state == "failed"
        self.open = None if state == "none" else self


class RemoteAnswer:
    def __init__(self, result: Result) -> None:
        self.result = result


class RemoteConnection:
    """A session in the process that has the store open. It is its own `session`."""

    def __init__(self, directory: Path) -> None:
        self._store = Store.of(str(directory))
        self._conversation = Conversation(self._store.directory)
        self.transactions = RemoteState()
        self.notices = Notices()

    @property
    def session(self) -> Self:
        return self

    @property
    def catalog(self) -> Catalog:
        lease = self._store.lease()
        try:
            objects = map(model.decode, self._store.ask("catalog", **lease.arguments()))
            return Catalog({item.id: item for item in objects})
        finally:
            self._store.release(lease)

    def execute(self, sql: str) -> RemoteAnswer:
        try:
            return RemoteAnswer(self._run(sql))
        except Error as error:
            if self.transactions.open is not None:
                self.transactions.told("failed")
            if not isinstance(error, Unavailable):  # the owner can be reached
                self._heard(self._conversation.call(Request("notices", {}))[0])
            raise translated(error) from error
        except KeyboardInterrupt:
            self._begin_again()
            raise

    def _run(self, sql: str) -> Result:
        value, rows = self._conversation.call(Request("execute", {"sql": sql}))
        self.transactions.told(value["transaction"])
        self._heard(value["notices"])
        if rows is None:
            return Result(value["tag"], affected=value["affected"])
        fields = fields_of(value["fields"])
        found = [row for batch in rows[1] for row in rows_of(batch, fields)]
        return Result(value["tag"], fields, found, value["affected"])

    def _heard(self, notices: list[str]) -> None:
        for text in notices:
            self.notices.add(text)

    def _begin_again(self) -> None:
        """Abandon the running statement and its transaction: disconnect and connect again."""
        self._conversation.close()
        self._conversation = Conversation(self._store.directory)
        self.transactions.told("none")

    def close(self) -> None:
        self._conversation.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
