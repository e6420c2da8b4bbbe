"""Access paths as keys and key ranges of a relation.

`ranges_of` compiles an `Access` into a function that gives, for a run and (in an index nested loop)
a left row, the key ranges to read, in the order of the rows; `keys_of` does the same for complete
primary keys, which are read by get. Combinations that differ only in representation (1.0 and 1.00)
are one key and are read once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from belvedere.codec.keys import KeyCodec
from belvedere.execution.direct.context import Bound, Context
from belvedere.execution.direct.expressions import Writer
from belvedere.execution.direct.source import Source
from belvedere.execution.run import Run
from belvedere.plan import access as paths
from belvedere.types import Row

KeyRange = tuple[bytes, bytes]
RangesOf = Callable[[Run, Row], list[KeyRange]]
KeysOf = Callable[[Run, Row], list[bytes]]
Bounds = tuple[Any, bool, Any, bool] | None
"""Low, inclusive, high, inclusive; None: nothing can be in the range."""


def keys_of(context: Context, access: paths.Access, codec: KeyCodec) -> KeysOf:
    """Complete keys for an access whose parts cover every column of the key."""
    combinations = _combinations(context, access.parts)
    encode = codec.encode

    def keys(run: Run, row: Row) -> list[bytes]:
        found = dict.fromkeys(map(encode, combinations(run, row)))
        if access.ordered:
            return sorted(found, reverse=access.reverse)
        return list(found)

    return keys


def ranges_of(context: Context, access: paths.Access, codec: KeyCodec) -> RangesOf:
    combinations = _combinations(context, access.parts)
    bounds = None if access.range is None else _bounds(context, access.range)

    def ranges(run: Run, row: Row) -> list[KeyRange]:
        limits = None if bounds is None else bounds(run, row)
        if bounds is not None and limits is None:
            return []
        found = {}
        for prefix in combinations(run, row):
            start, end = _range(codec, prefix, limits)
            assert end is not None, "a relation's keys have a prefix"
            found[start] = end
        if access.ordered and len(found) > 1:
            return sorted(found.items(), reverse=access.reverse)
        return list(found.items())

    return ranges


def _range(codec: KeyCodec, prefix: Row, limits: Bounds) -> tuple[bytes, bytes | None]:
    if limits is None:
        return codec.prefix_range(prefix)
    low, low_inclusive, high, high_inclusive = limits
    if low is None and high is None:
        return codec.not_null_range(prefix)
    return codec.range(prefix, low, low_inclusive, high, high_inclusive)


def _combinations(
    context: Context, parts: tuple[paths.Part, ...]
) -> Callable[[Run, Row], Iterable[Row]]:
    """Every combination of the parts' values; none when a part can match nothing."""
    if not parts:
        return lambda run, row: ((),)
    choices = _choices(context, parts)
    if all(isinstance(part, paths.OnePart) for part in parts):

        def single(run: Run, row: Row) -> Iterable[Row]:
            values = choices(run)(row)
            return () if None in values else (values,)

        return single
    expand = [_expander(part) for part in parts]

    def several(run: Run, row: Row) -> Iterable[Row]:
        found = choices(run)(row)
        return itertools.product(*[one(value) for one, value in zip(expand, found)])

    return several


def _choices(context: Context, parts: tuple[paths.Part, ...]) -> Bound:
    source = Source()
    writer = Writer(source, context.plan)
    texts = []
    for part in parts:
        match part:
            case paths.OnePart():
                texts.append(writer.value(part.value))
            case paths.ManyPart():
                texts.append("(" + "".join(f"{writer.value(v)}, " for v in part.values) + ")")
            case paths.EachPart():
                texts.append(writer.value(part.array))
            case paths.IsNullPart():
                texts.append("None")
    return source.row_function("(" + "".join(f"{text}, " for text in texts) + ")")


def _expander(part: paths.Part) -> Callable[[Any], list[Any]]:
    match part:
        case paths.OnePart():
            return lambda value: [] if value is None else [value]
        case paths.IsNullPart():
            return lambda value: [None]
        case _:
            return lambda values: [value for value in values or () if value is not None]


def _bounds(context: Context, limits: paths.Range) -> Callable[[Run, Row], Bounds]:
    low, high = limits.low, limits.high
    low_of = None if low is None else context.value_of(low.value)
    high_of = None if high is None else context.value_of(high.value)
    low_inclusive = low is None or low.inclusive
    high_inclusive = high is None or high.inclusive

    def bounds(run: Run, row: Row) -> Bounds:
        least = None if low_of is None else low_of(run)(row)
        most = None if high_of is None else high_of(run)(row)
        if (low_of is not None and least is None) or (high_of is not None and most is None):
            return None
        return least, low_inclusive, most, high_inclusive

    return bounds
