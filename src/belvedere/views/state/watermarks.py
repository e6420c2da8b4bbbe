"""Watermarks: the log position applied by each maintenance group and by each detached view.

The key family `watermark` holds a position under the id of a group or of a view (ids are given
out once, so the two never collide). A view that has an entry of its own is *detached* from its
group: it is being built, it has just joined, its last batch failed, or it is too slow for the
others. Without one its watermark is that of its group.
"""

from __future__ import annotations

import struct

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import Maintenance, ObjectState, View
from belvedere.codec import keyspace
from belvedere.errors import Unavailable
from belvedere.kv.batch import Write
from belvedere.txn.contracts import Reader, Writer

_POSITION = struct.Struct(">Q")
_EPOCH = keyspace.meta_key("maintenance epoch")


def read_watermark(reader: Reader, group: int) -> int | None:
    """The position a group, or a detached view, has applied; None when it has no watermark."""
    value = reader.get(keyspace.watermark_key(group))
    return None if value is None else decode_watermark(value)


def decode_watermark(value: bytes) -> int:
    return int(_POSITION.unpack(value)[0])


def build_watermark_write(group: int, position: int | None) -> Write:
    """Sets the watermark; None removes it."""
    key = keyspace.watermark_key(group)
    return key, None if position is None else _POSITION.pack(position)


def put_watermark(writer: Writer, group: int, position: int) -> None:
    writer.put(keyspace.watermark_key(group), _POSITION.pack(position))


def read_applied_position(reader: Reader, view: View) -> int | None:
    """The position a view that follows the log has applied; None when it no longer follows it."""
    own = read_watermark(reader, view.id)
    if own is not None or not view.group:
        return own
    return read_watermark(reader, view.group)


def backfill_progress_key(view: int) -> bytes:
    """The key under which the progress of a view's backfill is stored."""
    return keyspace.meta_key(f"backfill/{view}")


def read_maintenance_epoch(reader: Reader) -> int:
    """The maintenance epoch: how often view state was repaired, or a view detached, so far. A batch
    computed from the state of another epoch is void, on every node."""
    value = reader.get(_EPOCH)
    return 0 if value is None else int(_POSITION.unpack(value)[0])


def build_next_epoch_write(reader: Reader) -> Write:
    return _EPOCH, _POSITION.pack(read_maintenance_epoch(reader) + 1)


def follows_log(view: View) -> bool:
    """Whether the view is maintained by reading the log: it is being built, or deferred."""
    return view.state is ObjectState.BUILDING or view.maintenance is Maintenance.DEFERRED


def list_ready_deferred_views(catalog: Catalog) -> tuple[View, ...]:
    return tuple(
        view
        for view in catalog.views
        if view.maintenance is Maintenance.DEFERRED and view.state is ObjectState.READY
    )


def list_group_views(catalog: Catalog, group: int) -> tuple[View, ...]:
    """The readable views of a group, detached ones included."""
    return tuple(view for view in list_ready_deferred_views(catalog) if view.group == group)


def list_attached_group_views(reader: Reader, group: int) -> tuple[View, ...]:
    """The views that share their group's watermark: those that are not detached."""
    found = list_group_views(reader.catalog, group)
    marks = reader.multi_get([keyspace.watermark_key(view.id) for view in found])
    return tuple(view for view, mark in zip(found, marks, strict=True) if mark is None)


def require_applied_position(reader: Reader, view: View) -> int:
    mark = read_applied_position(reader, view)
    if mark is None:
        raise Unavailable("view has no watermark", sqlstate="XX000", name=view.name)
    return mark
