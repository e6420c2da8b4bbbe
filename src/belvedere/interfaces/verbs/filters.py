"""Filters pushed down by a reader in another process, as key ranges and index look-ups.

A filter is [operation, column, value ..]: `=`, `<`, `<=`, `>`, `>=` and `in` with values as text,
`prefix` with one, `null` with none. They become the WHERE of an ordinary query, and the optimizer
chooses the access path. Filters only narrow what is read: the reader applies them again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from belvedere.catalog.model import Column
from belvedere.catalog.relation import compiled_table
from belvedere.errors import InvalidInput
from belvedere.execution.direct.access import keys_of, ranges_of
from belvedere.execution.direct.compile import compile_plan
from belvedere.execution.direct.context import Context
from belvedere.execution.direct.dependence import walk
from belvedere.interfaces.verbs import queries
from belvedere.interfaces.verbs.leases import Lease
from belvedere.interfaces.verbs.relations import Named
from belvedere.interfaces.verbs.serving import Arguments, Peer
from belvedere.plan import nodes as n
from belvedere.plan.access import AccessKind
from belvedere.plan.values.quoting import quote_identifier
from belvedere.session.session import Session

KeyRange = tuple[bytes, bytes]
COMPARISONS = ("=", "<", "<=", ">", ">=")
FILTERS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Condition:
    """The WHERE of the filters, with its parameters."""

    text: str
    parameters: tuple[str, ...]


def condition_of(found: Named, arguments: Arguments) -> Condition | None:
    given = arguments.items("filters") if arguments.has("filters") else []
    if not given:
        return None
    if len(given) > FILTERS_MAX:
        raise InvalidInput("too many filters", sqlstate="54000", found=len(given))
    columns = {c.name: c for c in found.item.columns if not c.dropped and not c.hidden}
    texts: list[str] = []
    parameters: list[str] = []
    for item in given:
        text, values = _condition(columns, item)
        texts.append(text)
        parameters += values
    return Condition(" AND ".join(texts), tuple(parameters))


def _condition(columns: dict[str, Column], item: Any) -> tuple[str, list[str]]:
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
class Way:
    """The access path: ranges of the relation's primary key, or None for an index look-up, which
    is run as a query."""

    ranges: list[KeyRange] | None


def way_to(peer: Peer, held: Lease, found: Named, condition: Condition | None) -> Way:
    """Choose the access path. A past position has no indexes; there the entire relation is read."""
    catalog = held.reader.catalog
    compiled = compiled_table(catalog, found.item.id)
    everything = Way([(compiled.start, compiled.end)])
    if condition is None:
        return everything
    session = Session(peer.serving.shared)
    scan = _scan_of(session, found, condition)
    if scan is None:
        return everything
    if scan.access.index is not None:
        return everything if held.transaction is None else Way(None)
    run = session.new_run(held.reader, _values(session, found, condition))
    context = Context(catalog, lambda inner: compile_plan(catalog, inner))
    if scan.access.kind in (AccessKind.KEY, AccessKind.KEYS):
        keys = keys_of(context, scan.access, compiled.key)(run, ())
        return Way([(key, key + b"\0") for key in sorted(keys)])
    return Way(sorted(ranges_of(context, scan.access, compiled.key)(run, ())))


def _scan_of(session: Session, found: Named, condition: Condition) -> n.Scan | None:
    text = queries.select_text(session.catalog, found, condition.text)
    plan = session.planned(queries.bound(session, text, condition.parameters).plan)
    scans = [node for node, _ in walk(plan, 0) if isinstance(node, n.Scan)]
    mine = [scan for scan in scans if scan.relation == found.item.id]
    return mine[0] if len(scans) == len(mine) == 1 else None


def _values(session: Session, found: Named, condition: Condition) -> tuple[Any, ...]:
    text = queries.select_text(session.catalog, found, condition.text)
    return queries.converted(
        queries.bound(session, text, condition.parameters), condition.parameters
    )
