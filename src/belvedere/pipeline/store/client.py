"""Typed client of a store that is open elsewhere, or on HBase: its verbs as methods.

A `Store` holds only who runs its verbs (`VerbHost`), so it pickles and may be used in any process:
the driver, a planner, a task. Each call opens a connection of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import pyarrow as pa

from belvedere.errors import InvalidInput, Unavailable, Unsupported
from belvedere.pipeline.store.verb_hosts import OwnerHost, VerbHost, find_verb_host
from belvedere.remote.frames import Request
from belvedere.values.quoting import quote_identifier

if TYPE_CHECKING:
    from typing import Self

ReadKind = Literal["table", "view", "query"]
READ_KINDS: tuple[ReadKind, ...] = ("table", "view", "query")


PushedFilter = tuple[str, ...]
"""Operation, column, values as text: see `interfaces.verbs.read.filters`."""


class ReadRequest(NamedTuple):
    """What to read: a table or view by name, or the text of a query; `columns` when not all."""

    kind: ReadKind
    name: str
    columns: tuple[str, ...] | None = None

    def to_verb_arguments(self) -> dict[str, Any]:
        columns = None if self.columns is None else list(self.columns)
        return {self.kind: self.name, "columns": columns}


class ReadDescription(NamedTuple):
    """Schema of what is read. `key`: the columns of a table's primary key; `id`: 0 for a query."""

    kind: str
    schema: pa.Schema
    key: tuple[str, ...]
    id: int


class PositionLease(NamedTuple):
    """A position held in the owner, so that all tasks of a job read the same."""

    id: str
    position: int

    def to_verb_arguments(self) -> dict[str, Any]:
        return {"lease": self.id, "position": self.position}


class RelationSplit(NamedTuple):
    """A part of a relation: key ranges start <= key < end; none where only a query finds the
    rows."""

    ranges: tuple[tuple[bytes, bytes], ...]
    filters: tuple[PushedFilter, ...] = ()


class StoreIdentity(NamedTuple):
    """The store, its incarnation, and the range of the log that it has."""

    store: str
    incarnation: str
    position: int
    first: int


class ChangeSource(NamedTuple):
    """The source of changes to read: a table, a view, or the complete log."""

    kind: Literal["table", "view", "log"]
    name: str
    schema: pa.Schema


class StatementOutcome(NamedTuple):
    """Result of a statement. `rows` is None for a statement without a result set."""

    tag: str
    affected: int
    position: int
    rows: pa.Table | None
    notices: tuple[str, ...] = ()


class WriteResult(NamedTuple):
    """Result of a job's write. `rejects` has row, sqlstate, reason; `repeated`: the batch had been
    written before."""

    position: int
    rows: int
    rejects: pa.Table
    reasons: tuple[tuple[str, str, int], ...]
    repeated: bool


@dataclass(frozen=True, slots=True)
class Store:
    host: VerbHost

    @classmethod
    def from_url(cls, url: str) -> Self:
        """The store of a URL: a directory, or a database on HBase."""
        return cls(find_verb_host(url))

    @classmethod
    def in_directory(cls, directory: Path) -> Self:
        return cls(OwnerHost(directory))

    @property
    def url(self) -> str:
        return self.host.url

    @property
    def directory(self) -> Path:
        """The directory of a store that has one."""
        found = self.host.directory
        if found is None:
            raise Unsupported("files beside a database on HBase", database=self.url)
        return found

    # -- the store ----------------------------------------------------------------------------

    def position(self) -> int:
        return int(self.call_owner_verb("position"))

    def identity(self) -> StoreIdentity:
        return StoreIdentity(**self.call_owner_verb("identity"))

    def wait_past_position(self, position: int, seconds: int) -> int:
        """Wait until the log is past `position`, `seconds` at most; returns its position."""
        return int(self.call_owner_verb("wait", position=position, seconds=seconds))

    # -- reading at a position ----------------------------------------------------------------

    def describe_relation(self, relation: ReadRequest) -> ReadDescription:
        found = self.call_owner_verb("describe", **relation.to_verb_arguments())
        schema = pa.ipc.read_schema(pa.py_buffer(found["schema"]))
        return ReadDescription(found["kind"], schema, tuple(found["key"]), found.get("relation", 0))

    def take_position_lease(self, position: int | None = None) -> PositionLease:
        found = self.call_owner_verb("lease", position=position)
        return PositionLease(found["lease"], found["position"])

    def release_position_lease(self, lease: PositionLease) -> None:
        self.call_owner_verb("release", lease=lease.id)

    def plan_relation_splits(
        self,
        relation: ReadRequest,
        lease: PositionLease,
        count: int,
        filters: Sequence[PushedFilter] = (),
    ) -> list[RelationSplit]:
        """Splits of about the same size; they have every row that the filters match, and may have
        more."""
        arguments = {**relation.to_verb_arguments(), **lease.to_verb_arguments()}
        found = self.call_owner_verb("splits", count=count, filters=list(filters), **arguments)
        parts = [tuple((low, high) for low, high in part) for part in found]
        return [RelationSplit(part, () if part else tuple(filters)) for part in parts]

    def scan_relation_split(
        self, relation: ReadRequest, lease: PositionLease, split: RelationSplit
    ) -> Iterator[pa.RecordBatch]:
        arguments = {**relation.to_verb_arguments(), **lease.to_verb_arguments()}
        part, filters = list(split.ranges), list(split.filters)
        return self.fetch_verb_batches("scan", part=part, filters=filters, **arguments)

    def run_query_at_lease(self, sql: str, lease: PositionLease) -> Iterator[pa.RecordBatch]:
        return self.fetch_verb_batches("query", query=sql, **lease.to_verb_arguments())

    # -- the log ------------------------------------------------------------------------------

    def describe_change_source(self, of: str) -> ChangeSource:
        """The schema of the changes of a table, a view, or (`*`) the complete log."""
        found = self.call_owner_verb("describe_changes", of=of)
        schema = pa.ipc.read_schema(pa.py_buffer(found["schema"]))
        return ChangeSource(found["kind"], of, schema)

    def read_changes_of_source(
        self, followed: ChangeSource, after: int, through: int
    ) -> Iterator[pa.RecordBatch]:
        """The changes with after < position <= through."""
        if followed.kind == "view":
            return self.read_view_changes(followed.name, after, through)
        return self.read_log(followed.name if followed.kind == "table" else None, after, through)

    def read_log(self, table: str | None, after: int, through: int) -> Iterator[pa.RecordBatch]:
        """after < position <= through, of one table or (None) of all."""
        return self.fetch_verb_batches("changes", table=table, after=after, through=through)

    def read_view_changes(self, view: str, after: int, through: int) -> Iterator[pa.RecordBatch]:
        """A view's own changes: position, weight, row. The store records them from the first
        request on."""
        return self.fetch_verb_batches("view_changes", view=view, after=after, through=through)

    def view_position(self, view: str) -> int:
        """The last position up to which a view's changes can be read."""
        return int(self.call_owner_verb("view_position", view=view))

    def last_position_within_rows(self, after: int, rows: int, table: str | None = None) -> int:
        """The last position with at most `rows` changes after `after`; always at least one commit
        later."""
        return int(self.call_owner_verb("reach", after=after, rows=rows, table=table))

    # -- writing ------------------------------------------------------------------------------

    def check_write_columns(self, table: str, operation: str, columns: Sequence[str]) -> None:
        """Refuse columns that do not fit the table."""
        self.call_owner_verb(
            "check_columns", table=table, operation=operation, columns=list(columns)
        )

    def stage_rows(
        self,
        table: str,
        operation: str,
        schema: pa.Schema,
        batches: Iterable[pa.RecordBatch],
        job: str | None = None,
    ) -> tuple[str, int]:
        """Send rows that stay invisible until `commit_staged_parts`; returns the name of the part
        and its number of rows."""
        named = {"table": table, "operation": operation, "columns": schema.names, "job": job}
        found = self.send_verb_batches("stage", schema, batches, **named)
        return found["part"], found["rows"]

    def discard_staged_parts(self, parts: Sequence[str]) -> None:
        if parts:
            self.call_owner_verb("discard", parts=list(parts))

    def end_write_job(self, job: str, *, again: bool = False) -> None:
        """Remove all parts that tasks of a job staged, and refuse late ones. `again`: the job is a
        stream, whose next batch has the same name."""
        self.call_owner_verb("end_job", job=job, again=int(again))

    def commit_staged_parts(
        self,
        table: str,
        operation: str,
        parts: Sequence[str],
        *,
        on_error: str = "stop",
        job: str | None = None,
        writer: str | None = None,
        batch: int | None = None,
    ) -> WriteResult:
        """Write all parts in one transaction; with a writer, each batch only once. This ends the
        job, whether it succeeds or fails."""
        arguments = {
            "table": table,
            "operation": operation,
            "parts": list(parts),
            "on_error": on_error,
            "job": job,
            "writer": writer,
            "batch": batch,
        }
        with self.host.connect() as conversation:
            value, rows = conversation.call_verb(Request("write", arguments))
            assert rows is not None
            rejects = pa.Table.from_batches(rows[1], rows[0])
        reasons = tuple((state, text, count) for state, text, count in value["reasons"])
        return WriteResult(
            value["position"], value["written"], rejects, reasons, repeated=value["repeated"]
        )

    # -- statements ---------------------------------------------------------------------------

    def execute(self, sql: str, parameters: Iterable[Any] = ()) -> StatementOutcome:
        """Run statements, each in a transaction of its own; returns the result of the last."""
        with self.host.connect() as conversation:
            value, rows = conversation.call_verb(
                Request("execute", {"sql": sql, "parameters": list(parameters)})
            )
            table = None if rows is None else pa.Table.from_batches(rows[1], rows[0])
        if table is not None:
            table = table.rename_columns([field[0] for field in value["fields"]])
        notices = tuple(value["notices"])
        return StatementOutcome(value["tag"], value["affected"], value["position"], table, notices)

    # -- any verb -----------------------------------------------------------------------------

    def call_owner_verb(self, verb: str, **arguments: Any) -> Any:
        with self.host.connect() as conversation:
            return conversation.ask_owner(Request(verb, arguments))

    def fetch_verb_batches(self, verb: str, **arguments: Any) -> Iterator[pa.RecordBatch]:
        with self.host.connect() as conversation:
            _, rows = conversation.call_verb(Request(verb, arguments))
            if rows is None:
                raise Unavailable("the owner sent no rows", sqlstate="08P01")
            yield from rows[1]

    def send_verb_batches(
        self, verb: str, schema: pa.Schema, batches: Iterable[pa.RecordBatch], **arguments: Any
    ) -> Any:
        with self.host.connect() as conversation:
            return conversation.put(Request(verb, arguments), schema, batches)


def parse_read_request(options: Mapping[str, str]) -> ReadRequest:
    """The relation that the options of a reader name: exactly one of table, view and query."""
    given = [kind for kind in READ_KINDS if kind in options]
    if len(given) != 1:
        raise InvalidInput(
            "exactly one of the options table, view and query is wanted",
            sqlstate="22023",
            given=", ".join(given) or "none",
        )
    listed = options.get("columns")
    columns = None if listed is None else tuple(name.strip() for name in listed.split(","))
    name = options[given[0]]
    if given[0] == "query" and columns is not None:
        wanted = ", ".join(map(quote_identifier, columns))
        return ReadRequest(
            "query", f"SELECT {wanted} FROM (\n{name.rstrip().rstrip(';')}\n) AS query"
        )
    return ReadRequest(given[0], name, columns)


def make_store_from_options(options: Mapping[str, str]) -> Store:
    if "database" not in options:
        raise InvalidInput("the option database is wanted", sqlstate="22023")
    return Store.from_url(options["database"])
