"""The form in which keys and values of stored state pass between processes."""

from __future__ import annotations

import pyarrow as pa

PAIRS = pa.schema(
    [pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary(), nullable=False)]
)
