"""Values as a key column holds them: a condition can use a key only where the value that it
compares with is encoded as the column's type.

An integer may be looked up in a narrower column: one that the column cannot hold becomes NULL,
which no key equals.
"""

from __future__ import annotations

from belvedere.plan import expressions as e
from belvedere.plan.functions import cast_function
from belvedere.sql.rules.equality import make_comparison
from belvedere.types import Kind, SqlType

_BITS = {Kind.SMALLINT: 15, Kind.INTEGER: 31, Kind.BIGINT: 63}
INTEGERS = frozenset(_BITS)
_TEXTS = frozenset({Kind.TEXT, Kind.VARCHAR})


def is_comparable(side: e.Expression, value: e.Expression) -> bool:
    """Whether the value can be encoded as the key column's type without changing what it equals."""
    mine, theirs = side.type.kind, value.type.kind
    if mine is theirs:
        return True
    if mine in _BITS and theirs in _BITS:
        if _BITS[mine] >= _BITS[theirs]:
            return True
        number = value.value if isinstance(value, e.Literal) else None
        limit = 1 << _BITS[mine]
        return isinstance(number, int) and -limit <= number < limit
    return mine in _TEXTS and theirs in _TEXTS


def fit_key_value(side: e.Expression, value: e.Expression) -> e.Expression | None:
    """What a key column has where it equals the value; None: that is not known."""
    if is_comparable(side, value):
        return value
    mine, theirs = side.type, value.type
    if isinstance(value, e.Literal) and isinstance(value.value, int):
        return e.Literal(None, mine)
    return _narrow_integer(value, mine) if {mine.kind, theirs.kind} <= INTEGERS else None


def _narrow_integer(value: e.Expression, narrow: SqlType) -> e.Expression:
    """The integer, or NULL where the type does not have it."""
    limit = 1 << _BITS[narrow.kind]
    least, most = (e.Literal(bound, value.type) for bound in (-limit, limit - 1))
    fits = e.And((make_comparison(">=", value, least), make_comparison("<=", value, most)))
    narrowed = e.Cast(value, narrow, cast_function(value.type, narrow))
    return e.Case(((fits, narrowed),), e.Literal(None, narrow), narrow)
