"""Names in SQL text, as people write them."""

from __future__ import annotations

import re

from belvedere.sql.parse.lexical.keywords import FUNCTION_OR_TYPE, RESERVED
from belvedere.values.quoting import quote_identifier


def write_name(name: str) -> str:
    """A name as people write it: in quotes only where it needs them."""
    plain = re.fullmatch(r"[a-z_][a-z0-9_]*", name) and name not in RESERVED | FUNCTION_OR_TYPE
    return name if plain else quote_identifier(name)
