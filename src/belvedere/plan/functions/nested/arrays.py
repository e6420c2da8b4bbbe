"""Array functions: building, searching, ANY and ALL, unnest. One dimension, lower bound 1."""

from __future__ import annotations

import bisect
from collections.abc import Callable
from typing import Any

from belvedere.errors import Unsupported
from belvedere.plan.functions.cast.casts import text_formatter
from belvedere.plan.functions.core.function import (
    UDF,
    Function,
    Types,
    scalar,
    set_returning,
    stable,
)
from belvedere.plan.functions.logic.comparison import element_key
from belvedere.plan.functions.text.concat_format import unspecialized_form
from belvedere.types import SqlType
from belvedere.values.arrays import find_lower_bound
from belvedere.values.failures import bad_argument
from belvedere.values.numbers import INT4_MAX
from belvedere.values.value_size import require_value_size

Values = list[Any]
# The most elements PostgreSQL puts into an array.
_SIZE_MAX = 134_217_727
_DIMENSIONS_MAX = 6


def append(values: Values | None, value: Any) -> Values:
    return [*(values or ()), value]


def prepend(value: Any, values: Values | None) -> Values:
    return [value, *(values or ())]


def concatenate(left: Values | None, right: Values | None) -> Values | None:
    if left is None:
        return right
    return left if right is None else left + right


def length(values: Values, dimension: int) -> int | None:
    return len(values) if dimension == 1 and values else None


def lower_bound(values: Values, dimension: int) -> int | None:
    return find_lower_bound(values) if dimension == 1 and values else None


def cardinality(values: Values) -> int:
    return len(values)


def dimensions(values: Values) -> int | None:
    return 1 if values else None


def contains(left: Values, right: Values) -> bool:
    """Every element of the right is in the left; a NULL is in nothing."""
    if None in right:
        return False
    have = {_hash_key(value) for value in left if value is not None}
    return all(_hash_key(value) in have for value in right)


def is_contained(left: Values, right: Values) -> bool:
    return contains(right, left)


def overlaps(left: Values, right: Values) -> bool:
    have = {_hash_key(value) for value in left if value is not None}
    return any(_hash_key(value) in have for value in right if value is not None)


def _hash_key(value: Any) -> Any:
    return element_key(value)


def position(values: Values | None, value: Any) -> int | None:
    return position_from(values, value, 1)


def position_from(values: Values | None, value: Any, start: int | None) -> int | None:
    if not values:
        return None
    if start is None:
        raise bad_argument("initial position must not be null", "22004")
    wanted = element_key(value)
    for i in range(max(start, 1) - 1, len(values)):
        if element_key(values[i]) == wanted:
            return i + 1
    return None


def positions(values: Values | None, value: Any) -> Values | None:
    if values is None:
        return None
    wanted = element_key(value)
    return [i + 1 for i, one in enumerate(values) if element_key(one) == wanted]


def remove(values: Values | None, value: Any) -> Values | None:
    if values is None:
        return None
    wanted = element_key(value)
    return [one for one in values if element_key(one) != wanted]


def replace(values: Values | None, old: Any, new: Any) -> Values | None:
    if values is None:
        return None
    wanted = element_key(old)
    return [new if element_key(one) == wanted else one for one in values]


def subscript(values: Values, index: int) -> Any:
    """values[index]; outside the array it is NULL."""
    place = index - find_lower_bound(values)
    return values[place] if 0 <= place < len(values) else None


def array_slice(values: Values, low: int, high: int) -> Values:
    return values[max(low, 1) - 1 : max(high, 0)]


def trim(values: Values, count: int) -> Values:
    if not 0 <= count <= len(values):
        raise bad_argument("number of elements to trim is out of range", "2202E")
    return values[: len(values) - count]


def reverse(values: Values) -> Values:
    return values[::-1]


def sort(values: Values, descending: bool = False, nulls_first: bool | None = None) -> Values:
    first = descending if nulls_first is None else nulls_first
    nulls = [value for value in values if value is None]
    found = sorted((v for v in values if v is not None), key=element_key, reverse=descending)
    return nulls + found if first else found + nulls


def threshold_bucket(value: Any, thresholds: Values) -> int:
    """width_bucket by sorted thresholds: the number of thresholds at or below the value."""
    if None in thresholds:
        raise bad_argument("thresholds array must not contain nulls", "22004")
    return bisect.bisect_right(thresholds, element_key(value), key=element_key)


def unnest(values: Values) -> Values:
    return values


def array_fill_bounds(value: Any, dimension: Values | None, bounds: Values | None) -> Values:
    if dimension is None or bounds is None or None in dimension or None in bounds:
        raise bad_argument("dimension array or low bound array cannot be null", "22004")
    if len(dimension) > _DIMENSIONS_MAX:
        raise bad_argument("number of array dimensions exceeds the maximum allowed", "54000")
    if len(dimension) != len(bounds):
        raise bad_argument("wrong number of array subscripts", "2202E")
    if len(dimension) > 1:
        raise Unsupported("arrays of more than one dimension are not supported")
    filled = array_fill(value, dimension)
    if filled and bounds[0] + len(filled) > INT4_MAX:
        raise bad_argument("array lower bound is too large", "54000")
    if filled and bounds != [1]:
        raise Unsupported("arrays with other lower bounds than 1 are not supported")
    return filled


def array_fill(value: Any, dimension: Values | None) -> Values:
    if dimension is None:
        raise bad_argument("dimension array must not be null", "22004")
    if not dimension:
        return []
    if len(dimension) != 1 or dimension[0] is None:
        raise bad_argument("wrong number of array dimensions", "2202E")
    if dimension[0] > _SIZE_MAX:
        raise bad_argument("array size exceeds the maximum allowed", "54000")
    require_value_size(8 * dimension[0])
    return [value] * dimension[0]


def _specialize_to_string(types: Types) -> Callable[..., str | None]:
    element = types[0].element
    assert isinstance(element, SqlType)
    show = text_formatter(element)

    def to_string(
        values: Values | None, separator: str | None, null: str | None = None
    ) -> str | None:
        if values is None or separator is None:
            return None
        shown = [null if value is None else show(value) for value in values]
        texts = [text for text in shown if text is not None]
        require_value_size(sum(map(len, texts)) + len(texts) * len(separator))
        return separator.join(texts)

    return to_string


def to_array(text: str | None, separator: str | None) -> list[str | None] | None:
    return to_array_null(text, separator, None)


def to_array_null(
    text: str | None, separator: str | None, null: str | None
) -> list[str | None] | None:
    if text is None:
        return None
    parts: list[str]
    if not text:
        parts = []
    elif separator is None:
        parts = list(text)
    else:
        parts = text.split(separator) if separator else [text]
    return [None if null is not None and part == null else part for part in parts]


def to_table(text: str | None, separator: str | None, null: str | None = None) -> list[str | None]:
    return to_array_null(text, separator, null) or []


def _quantified_test(
    test: Callable[[Any, Any], bool], every: bool
) -> Callable[[Any, Values | None], bool | None]:
    """value op ANY/ALL (array) from the element test, with three-valued logic."""

    def compare(value: Any, values: Values | None) -> bool | None:
        if values is None:
            return None
        unknown = False
        for one in values:
            if one is None or value is None:
                unknown = True
            elif test(value, one) is not every:
                return not every
        return None if unknown else every

    return compare


def any_of(test: Callable[[Any, Any], bool]) -> Callable[[Any, Values | None], bool | None]:
    """The Python form of `value op ANY (array)` for the operator's own test."""
    return _quantified_test(test, every=False)


def all_of(test: Callable[[Any, Any], bool]) -> Callable[[Any, Values | None], bool | None]:
    """The Python form of `value op ALL (array)`."""
    return _quantified_test(test, every=True)


FUNCTIONS: tuple[Function, ...] = (
    scalar(
        "array_append(anycompatiblearray,anycompatible) anycompatiblearray",
        append,
        "list_append(_0, _1)",
        strict=False,
    ),
    scalar(
        "array_prepend(anycompatible,anycompatiblearray) anycompatiblearray",
        prepend,
        "list_prepend(_0, _1)",
        strict=False,
    ),
    scalar(
        "array_cat(anycompatiblearray,anycompatiblearray) anycompatiblearray",
        concatenate,
        "list_concat(_0, _1)",
        strict=False,
    ),
    scalar(
        "||(anycompatiblearray,anycompatible) anycompatiblearray",
        append,
        "list_append(_0, _1)",
        strict=False,
    ),
    scalar(
        "||(anycompatible,anycompatiblearray) anycompatiblearray",
        prepend,
        "list_prepend(_0, _1)",
        strict=False,
    ),
    scalar(
        "||(anycompatiblearray,anycompatiblearray) anycompatiblearray",
        concatenate,
        "list_concat(_0, _1)",
        strict=False,
    ),
    scalar("array_length(anyarray,int4) int4", length),
    scalar("array_lower(anyarray,int4) int4", lower_bound),
    scalar("array_upper(anyarray,int4) int4", length),
    scalar("array_ndims(anyarray) int4", dimensions),
    scalar("cardinality(anyarray) int4", cardinality, "CAST(len(_0) AS INTEGER)"),
    scalar("@>(anyarray,anyarray) bool", contains),
    scalar("<@(anyarray,anyarray) bool", is_contained),
    scalar("&&(anyarray,anyarray) bool", overlaps),
    scalar("array_position(anycompatiblearray,anycompatible) int4", position, strict=False),
    scalar(
        "array_position(anycompatiblearray,anycompatible,int4) int4", position_from, strict=False
    ),
    scalar("array_positions(anycompatiblearray,anycompatible) int4[]", positions, strict=False),
    scalar(
        "array_remove(anycompatiblearray,anycompatible) anycompatiblearray", remove, strict=False
    ),
    scalar(
        "array_replace(anycompatiblearray,anycompatible,anycompatible) anycompatiblearray",
        replace,
        strict=False,
    ),
    scalar("trim_array(anyarray,int4) anyarray", trim),
    scalar("array_reverse(anyarray) anyarray", reverse),
    scalar("array_sort(anyarray) anyarray", sort),
    scalar("array_sort(anyarray,bool) anyarray", sort),
    scalar("array_sort(anyarray,bool,bool) anyarray", sort),
    scalar("width_bucket(anycompatible,anycompatiblearray) int4", threshold_bucket),
    scalar("array_fill(anyelement,int4[]) anyarray", array_fill, strict=False),
    scalar("array_fill(anyelement,int4[],int4[]) anyarray", array_fill_bounds, strict=False),
    scalar("array subscript(anyarray,int4) anyelement", subscript),
    scalar("array slice(anyarray,int4,int4) anyarray", array_slice),
    stable(
        "array_to_string(anyarray,text) text", unspecialized_form, specialize=_specialize_to_string
    ),
    stable(
        "array_to_string(anyarray,text,text) text",
        unspecialized_form,
        strict=False,
        specialize=_specialize_to_string,
    ),
    scalar("string_to_array(text,text) text[]", to_array, UDF, strict=False),
    scalar("string_to_array(text,text,text) text[]", to_array_null, UDF, strict=False),
    set_returning("string_to_table(text,text) text", to_table, strict=False),
    set_returning("string_to_table(text,text,text) text", to_table, strict=False),
    set_returning("unnest(anyarray) anyelement", unnest, "unnest(_0)"),
)
