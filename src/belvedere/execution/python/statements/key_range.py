"""One key range of a statement, bounded by parameters and constants, as generated source.

A prefix of the key with equal values, which is what most statements about a few rows have, is
encoded in line. Anything else is computed by `operators.access`.
"""

from __future__ import annotations

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.relation_codecs import compiled_index, compiled_relation
from belvedere.codec.keyspace import next_prefix
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.expressions.expression_source import ExpressionWriter
from belvedere.execution.python.expressions.generated_function import (
    GeneratedFunction,
    tuple_source,
)
from belvedere.execution.python.operators.access import compile_ranges
from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n


def is_known_value(value: e.Expression) -> bool:
    """Whether the value is known before anything is read."""
    return isinstance(value, e.Parameter | e.Literal)


def is_one_range(scan: n.Scan) -> bool:
    """Whether it reads a range of the primary key, or of an index that has all its columns, bounded
    by parameters or constants."""
    access = scan.access
    if access.index is not None and not access.covering:
        return False
    return has_one_range(access)


def has_one_range(access: paths.Access) -> bool:
    """Whether it is a range of a key, bounded by parameters or constants."""
    if not access.parts and access.range is None:
        return False
    if access.full_key and access.range is None:
        return False
    values = [part.value for part in access.parts if isinstance(part, paths.EqualityPart)]
    if len(values) < len(access.parts):
        return False
    return all(map(is_known_value, values)) and _has_known_bounds(access)


def has_known_lists(access: paths.Access) -> bool:
    """Whether it is keys or ranges of keys, of parts that are parameters or constants, or lists of
    them."""
    values: list[e.Expression] = []
    for part in access.parts:
        match part:
            case paths.EqualityPart():
                values.append(part.value)
            case paths.InListPart():
                values += part.values
            case _:
                return False
    return bool(access.parts) and all(map(is_known_value, values)) and _has_known_bounds(access)


def _has_known_bounds(access: paths.Access) -> bool:
    if access.range is None:
        return True
    limits = (access.range.low, access.range.high)
    values = [limit.value for limit in limits if limit is not None]
    if access.range.pattern is not None:
        values.append(access.range.pattern)
    return all(map(is_known_value, values))


def write_range(
    catalog: Catalog, context: CompileContext, scan: n.Scan, source: GeneratedFunction, empty: str
) -> list[str]:
    """Lines that set `start` and `end`; where nothing can be in the range, they return `empty`."""
    access = scan.access
    relation = compiled_relation(catalog, scan.relation)
    codec = relation.key if access.index is None else compiled_index(catalog, access.index).key
    if access.range is not None:
        ranges = source.add_constant(compile_ranges(context, access, codec), "ranges")
        return [
            f"found = {ranges}(run, ())",
            f"if not found: return {empty}",
            "if len(found) > 1: return None",
            "(start, end), = found",
        ]
    writer = ExpressionWriter(source, context.plan)
    values = [part.value for part in access.parts if isinstance(part, paths.EqualityPart)]
    texts = [writer.write_value(value) for value in values]
    if any(isinstance(value, e.Literal) and value.value is None for value in values):
        return [f"return {empty}"]
    given = [text for text, value in zip(texts, values) if isinstance(value, e.Parameter)]
    nulls = " or ".join(f"{text} is None" for text in given) or "False"
    encode = source.add_constant(codec.compile_prefix_encoder(len(texts)), "encode")
    after = source.add_constant(next_prefix, "after")
    return [
        f"if {nulls}: return {empty}",
        f"start = {encode}({tuple_source(texts)})",
        f"end = {after}(start)",
    ]
