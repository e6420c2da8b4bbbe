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
from belvedere.interfaces.verbs import queries
from belvedere.interfaces.verbs.relations import Named, named
from belvedere.interfaces.verbs.serving import Arguments, Peer, Stream, Verb
from belvedere.plan.fields import Field
from belvedere.session.session import Session
from belvedere.session.subscription import Subscription, ViewChange, subscribe


def schema_of(found: Named) -> pa.Schema:
    return pa.schema(
        [
            pa.field("position", pa.int64(), nullable=False),
            pa.field("weight", pa.int64(), nullable=False),
            pa.field("row", pa.struct(list(found.schema)), nullable=False),
        ]
    )


def view_position(peer: Peer, arguments: Arguments) -> int:
    """The position up to which the view's changes can be read; they are retained from then on."""
    with _subscribed(peer, arguments, None) as subscription:
        return subscription.position


def view_changes(peer: Peer, arguments: Arguments) -> Stream:
    """The view's changes with after < position <= through."""
    after, through = arguments.number("after"), arguments.number("through")
    if not 0 <= after <= through:
        raise InvalidInput(
            "positions are not in the log", sqlstate="22023", after=after, through=through
        )
    found = named(peer.database.catalog, arguments)
    with _subscribed(peer, arguments, after) as subscription:
        changes = subscription.poll()
        if subscription.position < through:
            raise InvalidInput(
                "the view has not come so far",
                sqlstate="22023",
                through=through,
                view_position=subscription.position,
            )
    wanted = [change for change in changes if change.position <= through]
    return Stream(schema_of(found), [_batch(found, wanted)])


def _subscribed(peer: Peer, arguments: Arguments, after: int | None) -> Subscription:
    return subscribe(Session(peer.serving.shared), arguments.text("view"), after)


def _batch(found: Named, changes: list[ViewChange]) -> pa.RecordBatch:
    view = found.item
    assert isinstance(view, View)
    live = [column for column in view.columns if not column.dropped]
    fields = tuple(Field(column.name, column.type) for column in live)
    rows = queries.as_table(fields, iter([change.row for change in changes]))
    struct = rows.select(found.names).cast(found.schema).to_struct_array().combine_chunks()
    columns = [
        pa.array([change.position for change in changes], pa.int64()),
        pa.array([change.weight for change in changes], pa.int64()),
        struct,
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema_of(found))


VERBS: dict[str, Verb] = {"view_position": view_position, "view_changes": view_changes}
