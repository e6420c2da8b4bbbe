"""How many bytes a relation takes in the store, for the size functions.

Up to SAMPLE_ENTRIES entries are measured; a larger table is assumed to go on like its beginning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from belvedere.catalog.model import Index, Table, View
from belvedere.codec import keyspace
from belvedere.session.system_tables.pg_catalog.relations import Relation, Relations

if TYPE_CHECKING:
    from belvedere.session.session import Session

SAMPLE_ENTRIES = 10_000


def measure_table(session: Session, relation: Relation) -> int:
    """The bytes of the relation itself; an index of a primary key takes none of its own."""
    item = relation.item
    if relation.shape is not None and item is None:
        return 0
    if not isinstance(item, Table | Index | View):
        return 0
    bytes_seen, entries, ended = _measure_sample(session, item.id)
    if ended:
        return bytes_seen
    table = item.table if isinstance(item, Index) else item.id
    rows = max(int(session.shared.estimate_table_rows(table)), entries)
    return bytes_seen * rows // entries


def _measure_sample(session: Session, relation: int) -> tuple[int, int, bool]:
    """The bytes and number of the first entries, and whether they are all."""
    total, count = 0, 0
    with session.host.begin() as reader:
        for batch in reader.scan(*keyspace.relation_range(relation)):
            for key, value in batch:
                if count == SAMPLE_ENTRIES:
                    return total, count, False
                total += len(key) + len(value)
                count += 1
    return total, count, True


def measure_indexes(session: Session, relations: Relations, relation: Relation) -> int:
    indexes = relations.indexes_by_relation.get(relation.oid, ())
    return sum([measure_table(session, one) for one in indexes])


def measure_database(session: Session, relations: Relations) -> int:
    return sum([measure_table(session, one) for one in relations.every_relation])
