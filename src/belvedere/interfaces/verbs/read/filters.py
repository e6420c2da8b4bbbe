"""Filters pushed down by a reader in another process, as key ranges and index look-ups.

A filter is [operation, column, value ..]: `=`, `<`, `<=`, `>`, `>=` and `in` with values as text,
`prefix` with one, `null` with none. They become the WHERE of an ordinary query, and the optimizer
chooses the access path. Filters only narrow what is read: the reader applies them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from belvedere.catalog.model import CatalogColumn
from belvedere.catalog.relation_codecs import compiled_table
from belvedere.errors import InvalidInput
from belvedere.execution.python.compile import compile_plan
from belvedere.execution.python.context import CompileContext
from belvedere.execution.python.operators.access import compile_keys, compile_ranges
from belvedere.interfaces.verbs.leases import SnapshotLease
from belvedere.interfaces.verbs.peer import Arguments, Peer
from belvedere.interfaces.verbs.read import queries
from belvedere.interfaces.verbs.read.relations import NamedRelation
from belvedere.plan import nodes as n
from belvedere.plan.access import AccessKind
from belvedere.plan.plan_items import walk_plan_items
from belvedere.session.session import Session
from belvedere.values.quoting import quote_identifier

KeyRange = tuple[bytes, bytes]
COMPARISONS = ("=", "<", "<=", ">", ">=")
FILTERS_MAX = 1000


@dataclass(frozen=True, slots=True)
class FilterCondition:
    """The WHERE of the filters, with its parameters."""

    text: str
    parameters: tuple[str, ...]


def parse_filters(found: NamedRelation, arguments: Arguments) -> FilterCondition | None:
    given = arguments.get_list("filters") if arguments.has("filters") else []
    if not given:
        return None
    if len(given) > FILTERS_MAX:
        raise InvalidInput("too many filters", sqlstate="54000", found=len(given))
    columns = {c.name: c for c in found.item.columns if not c.dropped and not c.hidden}
    texts: list[str] = []
    parameters: list[str] = []
    for item in given:
        text, values = _filter_to_sql(columns, item)
        texts.append(text)
        parameters += values
    return FilterCondition(" AND ".join(texts), tuple(parameters))


def _filter_to_sql(columns: dict[str, CatalogColumn], item: Any) -> tuple[str, list[str]]:
    if not isinstance(item, list) or not all(isinstance(part, str) for part in item):
        raise InvalidInput("not a filter", sqlstate="08P01", found=repr(item)[:80])
    match item:
        case [str(operation), str(name), *values] if name in columns:
            column = columns[name]
        case _:
            raise InvalidInput("not a filter of a column", sqlstate="42703", found=str(item)[:80])
    left, value = quote_identifier(name), f"CAST(? AS {column.type})"
    if operation in COMPARISONS and len(values) == 1:
        return f"{left} {operation} {value}", values
    if operation == "in" and values:
        return f"{left} IN ({', '.join([value] * len(values))})", values
    if operation == "null" and not values:
        return f"{left} IS NULL", values
    if operation == "prefix" and len(values) == 1:
        after = _after_prefix(values[0])
        if after is None:
            return f"{left} >= {value}", values
        return f"{left} >= {value} AND {left} < {value}", [values[0], after]
    raise InvalidInput("not a filter", sqlstate="08P01", found=operation[:80])


def _after_prefix(prefix: str) -> str | None:
    """The smallest text after every text with this prefix, in code point order."""
    head = prefix.rstrip("\U0010ffff")
    if not head:
        return None
    following = ord(head[-1]) + 1
    return head[:-1] + chr(0xE000 if following == 0xD800 else following)


@dataclass(frozen=True, slots=True)
class FilterAccess:
    """The access path: ranges of the relation's primary key, or None for an index look-up, which
    is run as a query."""

    ranges: list[KeyRange] | None


def plan_access(
    peer: Peer, held: SnapshotLease, found: NamedRelation, condition: FilterCondition | None
) -> FilterAccess:
    """Choose the access path. A past position has no indexes; there the entire relation is read."""
    catalog = held.reader.catalog
    compiled = compiled_table(catalog, found.item.id)
    everything = FilterAccess([(compiled.start, compiled.end)])
    if condition is None:
        return everything
    session = Session(peer.served_store.shared)
    scan = _find_scan(session, found, condition)
    if scan is None:
        return everything
    if scan.access.index is not None:
        return everything if held.transaction is None else FilterAccess(None)
    run = session.make_run_context(held.reader, _parameter_values(session, found, condition))
    context = CompileContext(catalog, lambda inner: compile_plan(catalog, inner))
    if scan.access.kind in (AccessKind.KEY, AccessKind.KEYS):
        keys = compile_keys(context, scan.access, compiled.key)(run, ())
        return FilterAccess([(key, key + b"\0") for key in sorted(keys)])
    return FilterAccess(sorted(compile_ranges(context, scan.access, compiled.key)(run, ())))


def _find_scan(session: Session, found: NamedRelation, condition: FilterCondition) -> n.Scan | None:
    text = queries.select_text(session.catalog, found, condition.text)
    plan = session.expand_views_and_optimize(
        queries.bind_select(session, text, condition.parameters).plan
    )
    scans = [node for node in walk_plan_items(plan) if isinstance(node, n.Scan)]
    mine = [scan for scan in scans if scan.relation == found.item.id]
    return mine[0] if len(scans) == len(mine) == 1 else None


def _parameter_values(
    session: Session, found: NamedRelation, condition: FilterCondition
) -> tuple[Any, ...]:
    text = queries.select_text(session.catalog, found, condition.text)
    return queries.convert_parameters(
        queries.bind_select(session, text, condition.parameters), condition.parameters
    )
