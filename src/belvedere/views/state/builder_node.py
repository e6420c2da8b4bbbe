"""The builder of each unfinished index or view on a row-atomic store, so that nodes can take over.

The commit that puts an index or view being built into the catalog also writes which node builds it.
Only that node marks it ready, or gives it up. When its heartbeat stops, any other node makes itself
the builder, in a maintenance batch, of which there is one at a time; from then on every step of the
former builder is refused. A node finishes what it took over, if the build is resumable
(WITH (backfill = 'resumable')), or drops it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import CATALOG_RELATION, Index, Maintenance, ObjectState, View
from belvedere.codec import keyspace
from belvedere.errors import Unavailable
from belvedere.kv.batch import Write
from belvedere.txn.contracts import Reader, RowChange, Writer
from belvedere.txn.row_atomic.commit_protocol import RowCommit
from belvedere.views.state.build_state import is_unfinished_build, list_unfinished_builds
from belvedere.views.state.watermarks import backfill_progress_key

TAKEN_OVER = "another node has taken over what was being built"
_NODE = struct.Struct(">Q")


def builder_store_key(item: int) -> bytes:
    return keyspace.meta_key(f"builder/{item}")


def read_builder_node(reader: Reader, item: int) -> int | None:
    """The id of the node that builds an index or view; None: it is not being built."""
    value = reader.get(builder_store_key(item))
    return None if value is None else int(_NODE.unpack(value)[0])


def require_builder_node(reader: Reader, item: int, node: int) -> None:
    """Raise Unavailable (55006) when the node is no longer its builder."""
    if read_builder_node(reader, item) != node:
        raise Unavailable(TAKEN_OVER, sqlstate="55006")


def record_builder_changes(
    changes: Sequence[RowChange], reader: Reader, writer: Writer, node: int
) -> None:
    """In the commit of a catalog change: make this node the builder of each build that begins, and
    remove the builder of each build that ends."""
    for old, new in _decode_changed_indexes_and_views(changes):
        was, is_ = is_unfinished_build(old), is_unfinished_build(new)
        if is_ and not was and new is not None:
            writer.put(builder_store_key(new.id), _NODE.pack(node))
        elif was and old is not None:
            if (
                new is not None
                and new.state is ObjectState.READY
                and _get_build_stage(old) != _get_build_stage(new)
            ):
                require_builder_node(reader, old.id, node)
            if not is_:
                _delete_build_records(old, new, writer)


def _get_build_stage(item: Index | View) -> tuple[ObjectState, bool]:
    return item.state, isinstance(item, View) and item.replaces is not None


def _delete_build_records(old: Index | View, new: Index | View | None, writer: Writer) -> None:
    writer.delete(builder_store_key(old.id))
    writer.delete(backfill_progress_key(old.id))
    if isinstance(new, View) and new.maintenance is Maintenance.IMMEDIATE:
        writer.delete(keyspace.watermark_key(new.id))


def _decode_changed_indexes_and_views(
    changes: Sequence[RowChange],
) -> Iterator[tuple[Index | View | None, Index | View | None]]:
    for change in changes:
        if change.relation == CATALOG_RELATION:
            old = None if change.old is None else model.decode(change.old)
            new = None if change.new is None else model.decode(change.new)
            if isinstance(new or old, Index | View):
                yield (
                    old if isinstance(old, Index | View) else None,
                    new if isinstance(new, Index | View) else None,
                )


# -- taking over -----------------------------------------------------------------------------------


def take_over_orphaned_builds(
    commits: RowCommit, catalog: Catalog, reader: Reader
) -> list[Index | View]:
    """Make this node the builder of what silent nodes were building; returns those items."""
    found = {
        item.id: read_builder_node(reader, item.id) for item in list_unfinished_builds(catalog)
    }
    silent = {node for node in found.values() if node is not None and commits.is_silent(node)}
    orphans = {id_: node for id_, node in found.items() if node in silent}
    taken: list[int] = []

    def build_takeover_writes(newest: Reader) -> list[Write]:
        taken[:] = [id_ for id_, node in orphans.items() if read_builder_node(newest, id_) == node]
        return [(builder_store_key(id_), _NODE.pack(commits.node.id)) for id_ in taken]

    if orphans:
        commits.derive(build_takeover_writes)
    return [item for item in list_unfinished_builds(catalog) if item.id in taken]


def is_built_by_other_node(reader: Reader, items: Sequence[int], node: int) -> bool:
    """Whether another node builds some of the items: then it also uses those that are ready."""
    return any(read_builder_node(reader, id_) not in (None, node) for id_ in items)
