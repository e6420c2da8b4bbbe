"""Damage done to the files of a store that is not open, and what opening it then must do.

Cuts of RocksDB's log at every record boundary and at random offsets; the log deleted, or an older
one in its place; flipped bits, zeroed and exchanged blocks and stale copies, in every class of
file. Each case is one copy of one store whose contents are known. The store must either refuse,
naming what was acknowledged and what was found, or hold exactly what it held.
"""

from __future__ import annotations

import random
import shutil
import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from belvedere.config import Config, Durability
from belvedere.database import Database
from belvedere.errors import Corruption, Error, InvalidInput
from belvedere.kv.rocksdb import RocksStore
from tests.simulation.crash import checks, workload
from tests.simulation.crash.acks import AckFile, read_acks
from tests.simulation.crash.oracle import Mismatch, Replay, read_entry
from tests.simulation.crash.processes import Child, ChildFailed, call, killed
from tests.simulation.crash.report import Harness

CLASSES = {
    "log": "data/*.log",
    "sst": "data/*.sst",
    "manifest": "data/MANIFEST-*",
    "current": "data/CURRENT",
    "anchor": "anchor",
    "identity": "BELVEDERE",
    "options": "data/OPTIONS-*",
}
KINDS = ("flip", "zero", "swap", "cut", "stale", "missing", "empty")
_BLOCK = 32 * 1024
_LOG_HEADER = struct.Struct("<IHB")


@dataclass(frozen=True, slots=True)
class Specimen:
    """A store left by a killed process: everything it had is acknowledged, and known."""

    directory: Path
    position: int
    space: dict[bytes, bytes]
    tokens: tuple[str, ...]
    earlier: Path

    @property
    def store(self) -> Path:
        return self.directory / "store"


def make_specimen(directory: Path, commits: int, seed: int, mutation: str = "") -> Specimen:
    """A store with some sorted files and `commits` commits in RocksDB's own log, and a copy of it
    as it was half-way."""
    directory.mkdir(parents=True)
    acks, output = directory / "acks", directory / "stderr"
    plan = workload.Plan(directory / "store", acks, seed, threads=1)

    def live(points: int) -> None:
        file = AckFile(acks)
        database = workload.open_store(plan, file)
        writer = workload.Writer(plan, database, file, random.Random(f"{seed}/{points}"))
        if database.catalog.find_relation("customer") is None:
            workload.create_shop(writer)
        while database.position < points:
            writer.commit(writer.buy)
        writer.die()

    past = max(commits // 3, 1)
    for points in (past, past + commits // 2, past + commits):
        child = Child(lambda points=points: live(points), output, mutation=mutation)
        status, _ = child.wait()
        if not killed(status):
            raise ChildFailed(f"the specimen could not be made\n{child.errors()}")
        if points == past + commits // 2:
            shutil.copytree(directory / "store", directory / "earlier")
    # An open and a kill put what was in the log into sorted files; the rest stays in the log.
    pristine = directory / "pristine"
    shutil.copytree(directory / "store", pristine)
    position, space = call(lambda: _contents(pristine, "full"), output)
    tokens = tuple(told.token or "" for told in read_acks(acks).acknowledged)
    return Specimen(directory, position, space, tokens, directory / "earlier")


def _contents(store: Path, durability: str, accept: bool = False) -> tuple[int, dict[bytes, bytes]]:
    config = Config(durability=Durability(durability))
    with Database.open(store, config, create=False, accept_data_loss=accept) as database:
        space = dict(pair for batch in database.store.scan(b"", None) for pair in batch)
        return database.position, space


# -- judging ----------------------------------------------------------------------------------


def judge(specimen: Specimen, damage: Callable[[Path], object], accept: bool = False) -> list[str]:
    """Do the damage to a copy and open it. Runs in a child: nobody knows what RocksDB does."""
    copy = specimen.directory / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(specimen.store, copy)
    output = specimen.directory / "stderr"
    try:
        damage(copy)
        refused, problems = call(lambda: _judge_open(specimen, copy), output)
        if refused and accept and not problems:
            problems = call(lambda: _judge_accepted(specimen, copy), output)
    except ChildFailed as failed:
        return [str(failed)]
    return problems


def _judge_open(specimen: Specimen, copy: Path) -> tuple[bool, list[str]]:
    """Whether the store refused, and what is wrong with that."""
    try:
        position, space = _contents(copy, "full")
    except Error as error:
        return True, _judge_refusal(specimen, error)
    same = position == specimen.position and _kept(space) == _kept(specimen.space)
    return False, [] if same else [f"silently served at {position} of {specimen.position}"]


def _kept(space: dict[bytes, bytes]) -> dict[bytes, bytes]:
    """Everything but the engine's own notes."""
    return {key: value for key, value in space.items() if key[0] != 1}


def _judge_refusal(specimen: Specimen, refusal: Error) -> list[str]:
    if not isinstance(refusal, Corruption):
        return [f"refused as {type(refusal).__name__}: {refusal}"]
    if "acknowledged_through" not in refusal.facts:
        # Found while reading, long after the log was seen to be whole.
        return [] if refusal.facts.get("directory") else [f"no positions: {refusal}"]
    acknowledged, found = refusal.facts["acknowledged_through"], refusal.facts["found"]
    if acknowledged not in (specimen.position, "unknown"):
        return [f"says {acknowledged} was acknowledged, {specimen.position} was"]
    if isinstance(found, int) and found > specimen.position:
        return [f"says {found} was found of {specimen.position}"]
    return []


def _judge_accepted(specimen: Specimen, copy: Path) -> list[str]:
    """Go on with what is left: a prefix, consistent, of a new incarnation, open to new commits."""
    try:
        with Database.open(copy, create=False, accept_data_loss=True) as database:
            problems = _judge_rest(specimen, database)
            database.change_schema(lambda edit: edit.create_schema("after_the_loss"))
            position = database.position
        with Database.open(copy, create=False) as database:
            if database.position != position:
                problems.append(f"{database.position} after {position} and a clean close")
    except Corruption as error:
        # Files beyond repair, or rows missing in the middle: a backup has to help.
        helpless = "store" in error.message or "hole" in error.message or error.detail
        return [] if helpless else [str(error)]
    except (Error, Mismatch) as error:
        return [f"after accepting: {type(error).__name__}: {error}"]
    return problems


def _judge_rest(specimen: Specimen, database: Database) -> list[str]:
    space = dict(pair for batch in database.store.scan(b"", None) for pair in batch)
    replay = Replay()
    for key in sorted(key for key in space if key[0] == 2):
        replay.apply(read_entry(space[key]))
    problems = checks.compare_space(space, replay)
    for token in specimen.tokens[-3:]:
        try:
            database.token_to_position(token)
            problems.append("a token of the lost past is taken")
        except InvalidInput:
            continue
    return problems


# -- D9: the log cut short --------------------------------------------------------------------


def log_record_ends(data: bytes) -> list[int]:
    """Where each physical record of a RocksDB log ends: blocks of 32 KiB, in which every record has
    crc, length and type before it; a block's last bytes that hold no header are zero."""
    ends, at = [], 0
    while at + _LOG_HEADER.size <= len(data):
        left = _BLOCK - at % _BLOCK
        if left < _LOG_HEADER.size:
            at += left
            continue
        _, length, kind = _LOG_HEADER.unpack_from(data, at)
        if kind == 0:
            break
        at += _LOG_HEADER.size + length + (4 if 5 <= kind <= 8 else 0)
        ends.append(at)
    return ends


def current_log(store: Path) -> Path:
    """The log that RocksDB writes to: the one with the highest number."""
    return max((store / "data").glob("*.log"), key=lambda path: int(path.stem))


def log_cuts(harness: Harness, specimen: Specimen, boundaries: int | None, offsets: int) -> None:
    """D9: cut at record boundaries (None: at every one) and at random offsets, delete, go back."""
    rng = harness.rng
    data = current_log(specimen.store).read_bytes()
    ends = [0, *log_record_ends(data)]
    if ends[-1] != len(data):
        harness.count("parse", "the log ends where its last record does", [f"{ends[-1]}"])
    chosen = ends if boundaries is None else rng.sample(ends, min(boundaries, len(ends)))
    cuts = [("boundary", end) for end in sorted(chosen)]
    cuts += [("offset", rng.randrange(len(data))) for _ in range(offsets)]
    for kind, at in cuts:
        accept = rng.random() < 0.2
        problems = judge(specimen, lambda copy, at=at: cut(copy, at), accept)
        harness.count(kind, f"cut at {at} of {len(data)}", problems)
    older = current_log(specimen.earlier).read_bytes()
    harness.count("deleted", "log", judge(specimen, lambda s: current_log(s).unlink(), True))
    harness.count("older", "log", judge(specimen, lambda s: current_log(s).write_bytes(older)))
    harness.count("older", "data", judge(specimen, lambda s: _older(s, specimen, "data"), True))


def cut(store: Path, size: int) -> None:
    with current_log(store).open("r+b") as file:
        file.truncate(size)


def _older(store: Path, specimen: Specimen, name: str) -> None:
    if (store / name).is_dir():
        shutil.rmtree(store / name)
        shutil.copytree(specimen.earlier / name, store / name)
    else:
        shutil.copyfile(specimen.earlier / name, store / name)


# -- D8: damaged files ------------------------------------------------------------------------


def file_damage(harness: Harness, specimen: Specimen, each: int) -> None:
    """D8: `each` cases of every kind of damage in every class of file."""
    for name, pattern in CLASSES.items():
        for kind in KINDS:
            for case in range(each if kind in ("flip", "zero") else max(1, each // 3)):
                run = f"{kind} {name} #{case}"
                rng = random.Random(f"{harness.seed}/{run}")
                accept = rng.random() < 0.2
                problems = judge(
                    specimen,
                    lambda s, p=pattern, k=kind, r=rng: _damage(s, specimen, p, k, r),
                    accept,
                )
                harness.count(f"{name} {kind}", run, problems)


def _damage(store: Path, specimen: Specimen, pattern: str, kind: str, rng: random.Random) -> None:
    """One damage to one file of the class."""
    candidates = [path for path in sorted(store.glob(pattern)) if path.stat().st_size]
    path = rng.choice(candidates)
    data = bytearray(path.read_bytes())
    if kind == "flip":
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif kind == "zero":
        block = rng.randrange(0, len(data), 512)
        data[block : block + 512] = bytes(len(data[block : block + 512]))
    elif kind == "swap":
        one, other = (rng.randrange(0, len(data), 512) for _ in "ab")
        first, second = data[one : one + 512], data[other : other + 512]
        if len(first) == len(second):
            data[one : one + 512], data[other : other + 512] = second, first
    elif kind == "stale":
        older = specimen.earlier / path.relative_to(store)
        data = bytearray(older.read_bytes() if older.exists() else b"")
    elif kind == "cut":
        del data[rng.choice(log_record_ends(bytes(data)) or [len(data) // 2]) :]
    elif kind == "empty":
        data.clear()
    if kind == "missing":
        path.unlink()
    else:
        path.write_bytes(data)


def altered(specimen: Specimen) -> list[str]:
    """The control that must fail: a row changed through the engine, with every checksum right."""
    output = specimen.directory / "stderr"
    return judge(specimen, lambda store: call(lambda: _alter(store), output))


def _alter(store: Path) -> bool:
    engine = RocksStore.open(store / "data", create=False)
    key, value = next(iter(engine.scan(b"\x10", None)))[-1]
    engine.write([(key, value[:-1] + bytes([value[-1] ^ 1]))])
    engine.close()
    return True
