"""A scan with some keys replaced, against sorting a dict."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from belvedere.catalog.catalog import empty_catalog
from belvedere.kv.memory import MemoryStore
from belvedere.txn.history.merge_scan import merge_scan
from belvedere.txn.history.readers import NewestReader, OverlayReader

keys = st.binary(min_size=1, max_size=2)
stores = st.dictionaries(keys, st.binary(max_size=2), max_size=12)
overlays = st.dictionaries(keys, st.one_of(st.none(), st.binary(max_size=2)), max_size=12)
limits = st.one_of(st.none(), st.integers(0, 15))


def expected(
    stored: dict[bytes, bytes],
    overlay: dict[bytes, bytes | None],
    reverse: bool,
    limit: int | None,
) -> list[tuple[bytes, bytes]]:
    merged = {k: v for k, v in {**stored, **overlay}.items() if v is not None}
    return sorted(merged.items(), reverse=reverse)[:limit]


@given(stores, overlays, st.booleans(), limits, st.integers(1, 5))
def test_the_overlay_wins_wherever_its_keys_fall(
    stored: dict[bytes, bytes],
    overlay: dict[bytes, bytes | None],
    reverse: bool,
    limit: int | None,
    batch_rows: int,
) -> None:
    batches = MemoryStore(stored.items()).scan(b"", None, reverse=reverse, batch_rows=batch_rows)
    merged = list(merge_scan(batches, overlay, reverse=reverse, limit=limit))
    assert all(merged), "no batch is empty"
    found = [pair for batch in merged for pair in batch]
    assert found == expected(stored, overlay, reverse, limit)


@given(stores, overlays, keys, keys, st.booleans(), limits)
def test_a_reader_with_an_overlay_reads_as_if_it_were_stored(
    stored: dict[bytes, bytes],
    overlay: dict[bytes, bytes | None],
    start: bytes,
    end: bytes,
    reverse: bool,
    limit: int | None,
) -> None:
    catalog = empty_catalog()
    under = NewestReader(MemoryStore(stored.items()), 1, catalog)
    reader = OverlayReader(under, overlay, 2, catalog)
    merged = dict(expected(stored, overlay, False, None))
    inside = sorted(((k, v) for k, v in merged.items() if start <= k < end), reverse=reverse)[
        :limit
    ]
    batches = reader.scan(start, end, reverse=reverse, limit=limit)
    assert [pair for batch in batches for pair in batch] == inside
    every = sorted({*stored, *overlay})
    assert [reader.get(key) for key in every] == [merged.get(key) for key in every]
    assert reader.multi_get(every) == [merged.get(key) for key in every]
    values = [value for batch in reader.scan_values(b"", b"\xff\xff\xff") for value in batch]
    assert values == [merged[key] for key in sorted(merged)]
