"""The judge: opens a store that was left behind and says everything that is wrong with it.

- every acknowledged transaction is in the log, at its position, with the effect that the client
  expected;
- every record is a transaction that a client began (or the engine's own reservation of numbers);
  what was not acknowledged is thus whole or absent;
- the log is dense, a chain, and continues the copy taken at the last look;
- the key space, byte for byte, is what replaying that log from the beginning gives;
- the deferred counts are those of their watermark; no index, unique value or parent is wrong;
- tokens and incarnations keep to their rules; outcomes by transaction id agree with the log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from belvedere.config import Config, Durability
from belvedere.database import Database
from belvedere.errors import Error, InvalidInput, Unavailable
from tests.simulation.crash.acks import Client, Session, Told, read_acks
from tests.simulation.crash.oracle import (
    SEQUENCES,
    Entry,
    Mismatch,
    Replay,
    decode_row,
    read_entry,
)
from tests.simulation.crash.workload import COUNT_GROUP, COUNT_RELATION

COUNT_PREFIX = b"\x10" + COUNT_RELATION.to_bytes(4)
WATERMARK = b"\x03" + COUNT_GROUP.to_bytes(4)


@dataclass(slots=True)
class Findings:
    """What one look at a store found; `problems` is empty when all is well."""

    problems: list[str] = field(default_factory=list)
    position: int = 0
    incarnation: int = 0
    acknowledged: int = 0
    unacknowledged: int = 0


def check(
    directory: Path,
    acks: Path,
    archive: Path,
    durability: str = "full",
    lossy: bool = False,
) -> Findings:
    """Open the store and look. `lossy`: acknowledged commits may be gone (but nothing torn)."""
    findings = Findings()
    client = read_acks(acks)
    try:
        with Database.open(directory, Config(durability=Durability(durability))) as database:
            _look(database, client, archive, findings, lossy)
    except (Error, Mismatch) as error:
        findings.problems.append(f"{type(error).__name__}: {error}")
    return findings


def _look(
    database: Database, client: Client, archive: Path, findings: Findings, lossy: bool
) -> None:
    findings.position, findings.incarnation = database.position, database.incarnation
    space = dict(pair for batch in database.store.scan(b"", None) for pair in batch)
    records = extend_archive(archive, space, findings.problems)
    replay, effects = Replay(), {}
    for data in records:
        entry = read_entry(data)
        replay.apply(entry)
        effects[entry.transaction] = (entry, replay.effect(entry))
    if replay.position != database.position:
        findings.problems.append(f"log ends at {replay.position}, not at {database.position}")
    findings.problems += compare_space(space, replay)
    findings.problems += replay.broken_rules()
    findings.problems += compare_counts(space, records, replay)
    findings.problems += _compare_client(client, effects, findings, lossy)
    findings.problems += _check_outcomes(database, client, replay, lossy)
    findings.problems += _check_tokens(database, client, lossy)


def extend_archive(archive: Path, space: dict[bytes, bytes], problems: list[str]) -> list[bytes]:
    """All records from position 1 on: the copy so far, and what the store has after it."""
    known = load_archive(archive)
    stored = {int.from_bytes(key[1:]): value for key, value in space.items() if key[0] == 2}
    if stored and sorted(stored) != list(range(min(stored), max(stored) + 1)):
        problems.append(f"positions are not dense: {sorted(stored)}")
    for position, data in stored.items():
        if position <= len(known) and known[position - 1] != data:
            problems.append(f"position {position} was given to another record")
    fresh = [stored[p] for p in sorted(stored) if p > len(known)]
    if stored and max(stored) < len(known):
        problems.append(f"log ends at {max(stored)}, but {len(known)} was there before")
    with archive.open("ab") as file:
        for data in fresh:
            file.write(len(data).to_bytes(4) + data)
    return known + fresh


def load_archive(archive: Path) -> list[bytes]:
    data, at, records = (archive.read_bytes() if archive.exists() else b""), 0, []
    while at < len(data):
        size = int.from_bytes(data[at : at + 4])
        records.append(data[at + 4 : at + 4 + size])
        at += 4 + size
    return records


def compare_space(space: dict[bytes, bytes], replay: Replay) -> list[str]:
    """The key space against the replay, family by family."""
    # Nobody ever reads an index that was dropped before it was whole.
    ignored = (COUNT_PREFIX, *(b"\x10" + id_.to_bytes(4) for id_ in replay.half_built))
    have = {k: v for k, v in space.items() if k[0] == 0x10 and not k.startswith(ignored)}
    want = {**replay.rows, **replay.entries}
    want = {key: value for key, value in want.items() if not key.startswith(ignored)}
    for id_, item in replay.objects.items():
        prefix = b"\x10" + id_.to_bytes(4)
        # Rows of what was dropped go in one step of their own, once the log has forgotten it.
        if item.get("state") == "dropped" and not any(key.startswith(prefix) for key in have):
            want = {key: value for key, value in want.items() if not key.startswith(prefix)}
    problems = [f"key of no family: {key.hex()}" for key in space if key[0] not in (1, 2, 3, 0x10)]
    for key in sorted(have.keys() | want.keys()):
        if have.get(key) != want.get(key):
            relation = int.from_bytes(key[1:5])
            item = replay.objects.get(relation, {"name": f"relation {relation}"})
            what = "missing" if key not in have else "extra" if key not in want else "different"
            problems.append(f"{what} in {item['name']}: {key[5:].hex()}")
    return problems


def compare_counts(space: dict[bytes, bytes], records: list[bytes], replay: Replay) -> list[str]:
    """The deferred counts against a recount of the log up to their watermark."""
    watermark = int.from_bytes(space.get(WATERMARK, b""))
    if watermark > len(records):
        return [f"watermark {watermark} is ahead of the log, which ends at {len(records)}"]
    orders = replay.tables().get("orders")
    counts: dict[bytes, int] = {}
    for data in records[:watermark] if orders else ():
        for change in read_entry(data).changes:
            if orders and change.relation == orders["id"]:
                for row, weight in ((change.old, -1), (change.new, 1)):
                    if row is not None:
                        customer = decode_row(replay.kinds(orders["id"]), row)[1]
                        key = COUNT_PREFIX + customer.to_bytes(8)
                        counts[key] = counts.get(key, 0) + weight
    want = {key: count for key, count in counts.items() if count}
    have = {k: int.from_bytes(v) for k, v in space.items() if k.startswith(COUNT_PREFIX)}
    return [] if have == want else [f"counts at watermark {watermark}: {have} is not {want}"]


def _compare_client(
    client: Client,
    effects: dict[str, tuple[Entry, list[list[Any]]]],
    findings: Findings,
    lossy: bool,
) -> list[str]:
    problems = []
    for told in client.told.values():
        found = effects.get(told.transaction)
        findings.acknowledged += told.position is not None
        findings.unacknowledged += told.position is None and found is not None
        if found is None:
            if told.position is not None and not lossy:
                problems.append(f"acknowledged at {told.position}, but gone: {told.transaction}")
            continue
        problems += _compare_effect(told, *found)
    for transaction, (entry, _) in effects.items():
        own = {change.relation for change in entry.changes} <= {SEQUENCES, 1}
        if transaction not in client.told and not own:
            problems.append(f"position {entry.position} is nobody's: {transaction}")
    return problems


def _compare_effect(told: Told, entry: Entry, effect: list[list[Any]]) -> list[str]:
    if told.position is not None and told.position != entry.position:
        return [f"acknowledged at {told.position}, found at {entry.position}: {told.transaction}"]
    if told.failed is not None and told.failed != "08007":
        return [f"{told.failed} said it did not happen, found at {entry.position}"]
    want, have = net_effect(told.effect), net_effect(effect)
    if want.keys() != have.keys() or not all(is_written_row(have[at], want[at]) for at in want):
        return [f"position {entry.position}: {effect} is not {told.effect}"]
    return []


def is_written_row(stored: list[Any] | None, written: list[Any] | None) -> bool:
    """Whether a row is the one that a client wrote, who may not have known of columns that somebody
    added before his commit: they are NULL."""
    if stored is None or written is None:
        return stored is written
    known = len(written)
    return stored[:known] == written and all(value is None for value in stored[known:])


def net_effect(effect: list[list[Any]]) -> dict[str, Any]:
    return {repr((table, key)): row for table, key, row in effect}


def _check_outcomes(database: Database, client: Client, replay: Replay, lossy: bool) -> list[str]:
    problems = []
    for told in list(client.told.values())[-40:]:
        want = replay.positions.get(told.transaction)
        try:
            found = database.outcome(bytes.fromhex(told.transaction))
        except Unavailable:
            began = int.from_bytes(bytes.fromhex(told.transaction)[:8])
            if began + 1 >= database.log.first_position:
                problems.append(f"outcome of {told.transaction} is refused, but in the log")
            continue
        if found != want and not lossy:
            problems.append(f"outcome of {told.transaction} is {found}, the log says {want}")
    return problems


def _check_tokens(database: Database, client: Client, lossy: bool) -> list[str]:
    problems = []
    for told in client.acknowledged[-40:]:
        assert told.token is not None
        same = told.incarnation == database.incarnation
        try:
            position = database.token_to_position(told.token)
        except InvalidInput as refused:
            if same and not lossy:
                problems.append(f"token of {told.position} is refused: {refused}")
            continue
        if not same:
            problems.append(f"token of incarnation {told.incarnation} is taken")
        elif position != told.position:
            problems.append(f"token of {told.position} stands for {position}")
    return problems + _check_incarnations(database.incarnation, client, lossy)


def _check_incarnations(now: int, client: Client, lossy: bool) -> list[str]:
    """An unclean stop without durability begins a new incarnation; nothing else does."""
    problems: list[str] = []
    before: int | None = None
    unclean, allowed = False, True  # must there be a new one; may there be a new one
    for session in [*client.sessions, Session("full", now)]:
        after = session.incarnation
        if after is not None and before is not None:
            if after < before or (after == before and unclean):
                problems.append(f"incarnation {after} after {before} and an unclean stop")
            if after != before and not allowed and not lossy:
                problems.append(f"incarnation {after} after {before} for no reason")
        if after is not None:
            before, unclean, allowed = after, False, False
        unclean |= session.durability == "off" and after is not None and not session.closing
        allowed |= session.durability == "off" and not session.closed
    return problems
