"""A connection to a store that another process has open, for the shell."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import Self

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.errors import Error, Unavailable
from belvedere.interfaces.exceptions import translate_error
from belvedere.interfaces.verbs.wire import batch_to_rows, parse_fields
from belvedere.pipeline.store.client import Store
from belvedere.remote.client import OwnerConnection
from belvedere.remote.frames import Request
from belvedere.session.context.notices import Notices
from belvedere.session.context.result import Result


class RemoteTransaction:
    """The transaction state of the session, as of the owner's last reply."""

    def __init__(self) -> None:
        self.failed = False
        self.open: object | None = None

    def update_status(self, state: str) -> None:
        self.failed = state == "failed"
        self.open = None if state == "none" else self


class RemoteCursor:
    def __init__(self, result: Result) -> None:
        self.result = result


class RemoteConnection:
    """A session in the process that has the store open. It is its own `session`."""

    def __init__(self, directory: Path) -> None:
        self._store = Store.from_url(str(directory))
        self._conversation = OwnerConnection(self._store.directory)
        self.transactions = RemoteTransaction()
        self.notices = Notices()

    @property
    def session(self) -> Self:
        return self

    @property
    def catalog(self) -> Catalog:
        lease = self._store.take_position_lease()
        try:
            objects = map(
                model.decode, self._store.call_owner_verb("catalog", **lease.to_verb_arguments())
            )
            return Catalog({item.id: item for item in objects})
        finally:
            self._store.release_position_lease(lease)

    def execute(self, sql: str) -> RemoteCursor:
        try:
            return RemoteCursor(self._request_result(sql))
        except Error as error:
            if self.transactions.open is not None:
                self.transactions.update_status("failed")
            if not isinstance(error, Unavailable):  # the owner can be reached
                self._add_notices(self._conversation.call_verb(Request("notices", {}))[0])
            raise translate_error(error) from error
        except KeyboardInterrupt:
            self._restart_conversation()
            raise

    def _request_result(self, sql: str) -> Result:
        value, rows = self._conversation.call_verb(Request("execute", {"sql": sql}))
        self.transactions.update_status(value["transaction"])
        self._add_notices(value["notices"])
        if rows is None:
            return Result(value["tag"], affected=value["affected"])
        fields = parse_fields(value["fields"])
        found = [row for batch in rows[1] for row in batch_to_rows(batch, fields)]
        return Result(value["tag"], fields, found, value["affected"])

    def _add_notices(self, notices: list[str]) -> None:
        for text in notices:
            self.notices.add(text)

    def _restart_conversation(self) -> None:
        """Abandon the running statement and its transaction: disconnect and connect again."""
        self._conversation.close()
        self._conversation = OwnerConnection(self._store.directory)
        self.transactions.update_status("none")

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
