"""Access paths: how a scan reaches its rows by key, prefix or range.

One structure covers all of them. `parts` are equalities on the leading columns of the key, `range`
bounds the key column after them, and `index` says whose key is meant (None: the relation's primary
key).

| parts | range | meaning |
|---|---|---|
| none | none | full scan in key order |
| all columns | - | one get, or a multi-get when a part has several values |
| some columns | none | prefix scan |
| some or none | bounded | range scan |

A part that is NULL selects nothing, except `IsNullPart`, which selects the rows where the key
column is NULL. An access only narrows: what it does not imply stays in `Scan.residual`.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from belvedere.plan.expressions import Expression


@dataclass(frozen=True, slots=True)
class EqualityPart:
    """key column = value"""

    value: Expression


@dataclass(frozen=True, slots=True)
class InListPart:
    """key column IN (values); equal values count once"""

    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class AnyElementPart:
    """key column = ANY (array); equal elements count once, NULL elements not at all"""

    array: Expression


@dataclass(frozen=True, slots=True)
class IsNullPart:
    """key column IS NULL"""


Part = EqualityPart | InListPart | AnyElementPart | IsNullPart


@dataclass(frozen=True, slots=True)
class Bound:
    value: Expression
    inclusive: bool


@dataclass(frozen=True, slots=True)
class Range:
    """Bounds on one key column; NULLs of the column are outside of every range.

    `pattern` stands in place of both bounds: the text column begins as this LIKE pattern does,
    which is known when the statement runs. A pattern without a fixed beginning bounds nothing.
    """

    low: Bound | None = None
    high: Bound | None = None
    pattern: Expression | None = None


class AccessKind(enum.StrEnum):
    FULL = "full"
    KEY = "key"
    KEYS = "keys"
    PREFIX = "prefix"
    RANGE = "range"


@dataclass(frozen=True, slots=True)
class Access:
    """An access path, as described above. Bounds are in value order; the executor handles
    descending key columns.

    `full_key`: the parts cover the complete primary key, or every key column of a unique index, so
    each combination has at most one row. `covering`: the index has every column the scan needs.
    `reverse`: rows are read in reverse key order. `ordered`: the order of rows matters to the
    plan above (it replaced a sort); otherwise the executor may return them in any order.
    """

    index: int | None = None
    index_name: str = ""
    parts: tuple[Part, ...] = ()
    range: Range | None = None
    full_key: bool = False
    covering: bool = False
    reverse: bool = False
    ordered: bool = False

    @property
    def kind(self) -> AccessKind:
        if self.range is not None:
            return AccessKind.RANGE
        if not self.parts:
            return AccessKind.FULL
        if not self.full_key:
            return AccessKind.PREFIX
        single = all(isinstance(part, EqualityPart | IsNullPart) for part in self.parts)
        return AccessKind.KEY if single else AccessKind.KEYS


FULL = Access()
