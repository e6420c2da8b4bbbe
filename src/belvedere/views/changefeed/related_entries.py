"""State entries that must be combined to produce one view row, for the changefeed.

Most views compute a row from one entry. A local view adds up the entries of a group in all
partitions; a co-located join joins the rows of all tables under one key. What such an entry adds to
the view is known only together with its related entries, whether these have changed or not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.catalog.relation_codecs import compiled_view
from belvedere.codec import keyspace
from belvedere.txn.contracts import Reader

EntryStates = dict[bytes, bytes | None]


class RelatedEntryRule(NamedTuple):
    """Which entries are related: those with the same first column; or, with `partitions` (the
    encoded values of that column), those with the same other columns."""

    first_end: Callable[[bytes], int]
    partitions: tuple[bytes, ...]

    def get_shared_key_part(self, key: bytes) -> bytes:
        """The part of the key that an entry shares with all related ones."""
        end = self.first_end(key)
        return key[end:] if self.partitions else key[:end]

    def read_related_entries(self, reader: Reader, shared: bytes) -> EntryStates:
        """The related entries at the reader's state."""
        if self.partitions:
            keys = [partition + shared for partition in self.partitions]
            return dict(zip(keys, reader.multi_get(keys), strict=True))
        end = keyspace.next_prefix(shared)
        assert end is not None
        return {key: value for batch in reader.scan(shared, end) for key, value in batch}


class RelatedEntries:
    """The entries related to those that some changes touch, at each step of these changes."""

    def __init__(
        self, kinship: RelatedEntryRule, reader: Reader, touched: Collection[bytes]
    ) -> None:
        self._rule = kinship
        self._untouched: dict[bytes, EntryStates] = {}
        for shared in {kinship.get_shared_key_part(key) for key in touched}:
            found = kinship.read_related_entries(reader, shared)
            self._untouched[shared] = {k: v for k, v in found.items() if k not in touched}
        self._touched: dict[bytes, list[bytes]] = {shared: [] for shared in self._untouched}
        for key in touched:
            self._touched[kinship.get_shared_key_part(key)].append(key)

    def find_related_entries(self, keys: Iterable[bytes], state: EntryStates) -> EntryStates:
        """The entries related to these, without these; `state` has those that changes touch."""
        keys = set(keys)
        found: EntryStates = {}
        for shared in {self._rule.get_shared_key_part(key) for key in keys}:
            found |= self._untouched[shared]
            found |= {key: state[key] for key in self._touched[shared] if key not in keys}
        return found


def find_related_entry_rule(catalog: Catalog, view: View) -> RelatedEntryRule | None:
    """None for a view that makes each row of one entry."""
    form = view.form
    codec = compiled_view(catalog, view.id).key
    if form.colocated:
        return RelatedEntryRule(codec.first_column_end, ())
    if not form.local or view.reads:  # over a view a group is in one partition
        return None
    count = catalog.table(view.inputs[0]).partitions
    return RelatedEntryRule(
        codec.first_column_end, tuple(codec.encode_prefix((p,)) for p in range(count))
    )
