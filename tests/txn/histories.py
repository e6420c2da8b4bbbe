"""Random histories of rows and schema, with the state recorded at every position."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from belvedere.catalog.definitions import ColumnDefinition, IndexDefinition, KeyPartDefinition
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Index, Table
from belvedere.database import Database
from belvedere.errors import InvalidInput
from belvedere.txn.contracts import Reader
from belvedere.txn.transaction.transaction import Transaction
from belvedere.types import BIGINT, TEXT, Row
from tests.txn.shop import (
    column,
    delete,
    foreign_key,
    get,
    insert,
    key_space,
    move,
    scan,
    table,
    table_of,
    update,
)

NAMES = ("customer", "product", "orders", "staff", "extra")
EXTRA = table_of(
    "extra",
    column("id"),
    column("a", TEXT),
    column("up"),
    foreign_keys=(foreign_key("up", "product"),),
)

ids = st.integers(0, 5)
row_steps = st.tuples(
    st.sampled_from(("insert", "update", "delete", "move")),
    st.sampled_from(NAMES),
    ids,
    ids,
    st.sampled_from(("a", "b", "c", None)),
)
transactions = st.lists(row_steps, min_size=1, max_size=4)
schema_steps = st.one_of(
    st.tuples(st.just("index"), st.sampled_from(NAMES), st.integers(0, 3), st.booleans()),
    st.tuples(st.just("drop index"), st.integers(0, 7)),
    st.tuples(st.just("create extra")),
    st.tuples(st.just("drop table"), st.sampled_from(NAMES)),
    st.tuples(st.just("add column"), st.sampled_from(NAMES), st.booleans()),
    st.tuples(st.just("drop column"), st.sampled_from(NAMES), st.integers(0, 3)),
)
scripts = st.lists(
    st.one_of(transactions, transactions, transactions, schema_steps), min_size=1, max_size=25
)


@dataclass(slots=True)
class Recorded:
    """What a state looks like: the whole key space, and the rows of every table by name."""

    space: dict[bytes, bytes]
    rows: dict[str, list[Row]]
    version: int


@dataclass(slots=True)
class History:
    """Runs a script on a database and remembers every state it went through."""

    database: Database
    states: dict[int, Recorded] = field(default_factory=dict)
    records: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.record()

    def run(self, script: list[Any]) -> None:
        for step in script:
            try:
                if isinstance(step, list):
                    self.database.run_transaction(
                        lambda txn, step=step: [self._row(txn, *s) for s in step]
                    )
                else:
                    self.database.change_schema(lambda edit, step=step: self._schema(edit, *step))
            except InvalidInput:
                pass  # refused: the state must be the same, which the comparisons below see
            self.record()

    def record(self) -> None:
        """Note the newest state; positions passed since the last call were of one index build,
        in states that nobody compares."""
        last = max(self.states, default=0)
        self.records += [data for batch in self.database.log.read_bytes(last) for data in batch]
        with self.database.begin() as reader:
            state = Recorded(
                key_space(self.database), rows_by_table(reader), reader.catalog.version
            )
            self.states[reader.position] = state

    def _row(self, txn: Transaction, what: str, name: str, key: int, other: int, text: Any) -> None:
        if txn.catalog.find_relation(name) is None:
            return
        there = get(txn, name, key) is not None
        if what == "insert" and not there:
            insert(txn, name, self._values(txn, name, key, other, text))
        elif what == "update" and there:
            update(txn, name, self._values(txn, name, key, other, text))
        elif what == "delete" and there:
            delete(txn, name, key)
        elif what == "move" and there:
            move(txn, name, (key,), self._values(txn, name, other, key, text))

    def _values(self, txn: Transaction, name: str, key: int, other: int, text: Any) -> Row:
        row: list[Any] = []
        for one in table(txn, name).table.columns:
            if one.dropped:
                row.append(None)
            elif one.slot == 0:
                row.append(key)
            else:
                row.append(other if one.type == BIGINT else text)
        return tuple(row)

    def _schema(self, edit: CatalogEdit, what: str, *facts: Any) -> None:
        if what == "create extra":
            edit.create_table(EXTRA)
        elif what == "drop index":
            made = [i for i in edit.catalog.objects.values() if self._is_made(edit, i)]
            if made:
                edit.drop_index(made[facts[0] % len(made)].id)
        else:
            self._alter(edit, what, edit.catalog.require_relation(Table, facts[0]), facts)

    def _is_made(self, edit: CatalogEdit, item: object) -> bool:
        return (
            isinstance(item, Index)
            and edit.catalog.find_relation(item.name) is item
            and not item.hidden
        )

    def _alter(self, edit: CatalogEdit, what: str, of: Table, facts: tuple[Any, ...]) -> None:
        live = [c for c in of.columns if not c.dropped]
        if what == "index":
            part = KeyPartDefinition(live[facts[1] % len(live)].name, descending=facts[1] > 1)
            edit.create_index(IndexDefinition(of.name, (part,), unique=facts[2]))
        elif what == "drop table":
            edit.drop_table(of.id, cascade=True)
        elif what == "add column":
            name = f"c{len(of.columns)}"
            edit.add_column(of.id, ColumnDefinition(name, TEXT, missing="m" if facts[1] else None))
        else:
            edit.drop_column(of.id, live[facts[1] % len(live)].name)


def rows_by_table(reader: Reader) -> dict[str, list[Row]]:
    return {one.name: scan(reader, one.name) for one in reader.catalog.tables}
