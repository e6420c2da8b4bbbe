"""Verbs that read the changefeed of a view: `con.subscribe` for other processes.

| column | type |
|---|---|
| position | where the view applied it: for a deferred view, the end of the maintenance batch |
| weight | how many copies of the row were inserted; negative: deleted |
| row | the row, as a struct |
"""

from __future__ import annotations

import pyarrow as pa

from belvedere.catalog.model import View
from belvedere.errors import InvalidInput
from belvedere.interfaces.verbs.peer import Arguments, Peer, Stream, Verb
from belvedere.interfaces.verbs.read import queries
from belvedere.interfaces.verbs.read.relations import NamedRelation, find_relation
from belvedere.plan.fields import Field
from belvedere.session.materialized.change_stream import Subscription, ViewChange
from belvedere.session.materialized.subscription import open_view_subscription
from belvedere.session.session import Session


def changes_schema(found: NamedRelation) -> pa.Schema:
    return pa.schema(
        [
            pa.field("position", pa.int64(), nullable=False),
            pa.field("weight", pa.int64(), nullable=False),
            pa.field("row", pa.struct(list(found.arrow_schema)), nullable=False),
        ]
    )


def view_position(peer: Peer, arguments: Arguments) -> int:
    """The position up to which the view's changes can be read; they are retained from then on."""
    with _open_subscription(peer, arguments, None) as subscription:
        return subscription.position


def view_changes(peer: Peer, arguments: Arguments) -> Stream:
    """The view's changes with after < position <= through."""
    after, through = arguments.get_number("after"), arguments.get_number("through")
    if not 0 <= after <= through:
        raise InvalidInput(
            "positions are not in the log", sqlstate="22023", after=after, through=through
        )
    found = find_relation(peer.database.catalog, arguments)
    with _open_subscription(peer, arguments, after) as subscription:
        changes = subscription.poll()
        if subscription.position < through:
            raise InvalidInput(
                "the view has not come so far",
                sqlstate="22023",
                through=through,
                view_position=subscription.position,
            )
    wanted = [change for change in changes if change.position <= through]
    return Stream(changes_schema(found), [_make_batch(found, wanted)])


def _open_subscription(peer: Peer, arguments: Arguments, after: int | None) -> Subscription:
    session = Session(peer.served_store.shared)
    return open_view_subscription(session, arguments.get_text("view"), after)


def _make_batch(found: NamedRelation, changes: list[ViewChange]) -> pa.RecordBatch:
    view = found.item
    assert isinstance(view, View)
    live = [column for column in view.columns if not column.dropped]
    fields = tuple(Field(column.name, column.type) for column in live)
    rows = queries.rows_to_table(fields, iter([change.row for change in changes]))
    struct = (
        rows.select(found.column_names).cast(found.arrow_schema).to_struct_array().combine_chunks()
    )
    columns = [
        pa.array([change.position for change in changes], pa.int64()),
        pa.array([change.weight for change in changes], pa.int64()),
        struct,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=changes_schema(found))


VERBS: dict[str, Verb] = {"view_position": view_position, "view_changes": view_changes}
