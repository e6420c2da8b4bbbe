"""Access paths as keys and key ranges of a relation.

`compile_ranges` compiles an `Access` into a function that gives, for a run and (in an index nested
loop) a left row, the key ranges to read, in the order of the rows; `compile_keys` does the same for
complete primary keys, which are read by get. Combinations that differ only in representation (1.0
and 1.00) are one key and are read once.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable
from typing import Any

from belvedere.codec.keys import KeyCodec
from belvedere.execution.python.context import BindRun, CompileContext
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import GeneratedFunction
from belvedere.execution.run import Run
from belvedere.plan import access as paths
from belvedere.plan.expressions import Expression
from belvedere.plan.pattern_prefix import find_prefix_bounds
from belvedere.txn.exact_order import find_exact_ranges, has_long_bound
from belvedere.types import Row

KeyRange = tuple[bytes, bytes]
RangesOf = Callable[[Run, Row], list[KeyRange]]
KeysOf = Callable[[Run, Row], list[bytes]]
Bounds = tuple[Any, bool, Any, bool] | None
"""Low, inclusive, high, inclusive; None: nothing can be in the range."""


def compile_keys(context: CompileContext, access: paths.Access, codec: KeyCodec) -> KeysOf:
    """Complete keys for an access whose parts cover every column of the key."""
    combinations = _compile_combinations(context, access.parts)
    encode = codec.encode

    def compute_keys(run: Run, row: Row) -> list[bytes]:
        found = dict.fromkeys(map(encode, combinations(run, row)))
        if access.ordered:
            return sorted(found, reverse=access.reverse)
        return list(found)

    return compute_keys


def compile_single_key(
    context: CompileContext, access: paths.Access, codec: KeyCodec
) -> Callable[[Run], Callable[[Row], bytes | None]] | None:
    """For an access by one value for each column of the key: a function that gives, for a run, a
    function from a left row to the key. None for other accesses."""
    if not all(isinstance(part, paths.EqualityPart) for part in access.parts):
        return None
    choices, encode = _compile_choices(context, access.parts), codec.encode

    def bind_run(run: Run) -> Callable[[Row], bytes | None]:
        values_of = choices(run)
        return lambda row: None if None in (values := values_of(row)) else encode(values)

    return bind_run


def compile_ranges(context: CompileContext, access: paths.Access, codec: KeyCodec) -> RangesOf:
    combinations = _compile_combinations(context, access.parts)
    bounds = None if access.range is None else _compile_bounds(context, access.range)

    def compute_ranges(run: Run, row: Row) -> list[KeyRange]:
        limits = None if bounds is None else bounds(run, row)
        if bounds is not None and limits is None:
            return []
        found: dict[bytes, bytes] = {}
        for prefix in combinations(run, row):
            if limits is not None and has_long_bound(codec, len(prefix), limits):
                found |= find_exact_ranges(codec, run.reader.scan, prefix, limits)
                continue
            start, end = _bounded_range(codec, prefix, limits)
            assert end is not None, "a relation's keys have a prefix"
            found[start] = end
        if access.ordered and len(found) > 1:
            return sorted(found.items(), reverse=access.reverse)
        return list(found.items())

    return compute_ranges


def _bounded_range(codec: KeyCodec, prefix: Row, limits: Bounds) -> tuple[bytes, bytes | None]:
    if limits is None:
        return codec.prefix_range(prefix)
    low, low_inclusive, high, high_inclusive = limits
    if low is None and high is None:
        return codec.not_null_range(prefix)
    return codec.bounded_range(prefix, low, low_inclusive, high, high_inclusive)


def _compile_combinations(
    context: CompileContext, parts: tuple[paths.Part, ...]
) -> Callable[[Run, Row], Iterable[Row]]:
    """Every combination of the parts' values; none when a part can match nothing."""
    if not parts:
        return lambda run, row: ((),)
    choices = _compile_choices(context, parts)
    if all(isinstance(part, paths.EqualityPart) for part in parts):

        def single_combination(run: Run, row: Row) -> Iterable[Row]:
            values = choices(run)(row)
            return () if None in values else (values,)

        return single_combination
    expand = [_value_expander(part) for part in parts]

    def all_combinations(run: Run, row: Row) -> Iterable[Row]:
        found = choices(run)(row)
        return itertools.product(*[one(value) for one, value in zip(expand, found)])

    return all_combinations


def _compile_choices(context: CompileContext, parts: tuple[paths.Part, ...]) -> BindRun:
    source = GeneratedFunction()
    writer = ExpressionWriter(source, context.plan)
    texts = []
    for part in parts:
        match part:
            case paths.EqualityPart():
                texts.append(writer.write_value(part.value))
            case paths.InListPart():
                texts.append("(" + "".join(f"{writer.write_value(v)}, " for v in part.values) + ")")
            case paths.AnyElementPart():
                texts.append(writer.write_value(part.array))
            case paths.IsNullPart():
                texts.append("None")
    return source.build_row_function("(" + "".join(f"{text}, " for text in texts) + ")")


def _value_expander(part: paths.Part) -> Callable[[Any], list[Any]]:
    match part:
        case paths.EqualityPart():
            return lambda value: [] if value is None else [value]
        case paths.IsNullPart():
            return lambda value: [None]
        case _:
            return lambda values: [value for value in values or () if value is not None]


def _compile_bounds(context: CompileContext, limits: paths.Range) -> Callable[[Run, Row], Bounds]:
    if limits.pattern is not None:
        return _compile_pattern_bounds(context, limits.pattern)
    low, high = limits.low, limits.high
    low_of = None if low is None else context.value_of(low.value)
    high_of = None if high is None else context.value_of(high.value)
    low_inclusive = low is None or low.inclusive
    high_inclusive = high is None or high.inclusive

    def compute_bounds(run: Run, row: Row) -> Bounds:
        least = None if low_of is None else low_of(run)(row)
        most = None if high_of is None else high_of(run)(row)
        if (low_of is not None and least is None) or (high_of is not None and most is None):
            return None
        return least, low_inclusive, most, high_inclusive

    return compute_bounds


def _compile_pattern_bounds(
    context: CompileContext, pattern: Expression
) -> Callable[[Run, Row], Bounds]:
    pattern_of = context.value_of(pattern)

    def compute_bounds(run: Run, row: Row) -> Bounds:
        value = pattern_of(run)(row)
        if value is None:
            return None
        low, high = find_prefix_bounds(value)
        return low or None, True, high, False

    return compute_bounds


def compile_prefix_check(
    context: CompileContext, pattern: Expression
) -> Callable[[Run, Row], bool]:
    """Whether a LIKE pattern bounds anything in this run: one that is NULL selects nothing."""
    bounds = _compile_pattern_bounds(context, pattern)

    def is_bounded(run: Run, row: Row) -> bool:
        limits = bounds(run, row)
        return limits is None or limits[0] is not None

    return is_bounded
