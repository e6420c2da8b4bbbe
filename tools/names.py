"""Names: what a reader can guess from them, counted over the product.

A function whose name is one word says too little; a bare participle says what was done, but not to
what; a word that the field does not use has to be learned. The counts are kept in
tests/tidy/ratchet.toml and may only go down. `python -m tools.tidy --report` prints them.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

RATCHET = Path("tests/tidy/ratchet.toml")
FOLDER_FILES_MAX = 16
"""Modules directly in one folder, its `__init__` not counted."""

COINED = {
    "keeper": "view_registry",
    "wish": "index_requirement",
    "wishes": "required_indexes",
    "stretch": "log_range",
    "alone": "single_row",
    "swap": "single_row",
    "swaps": "single_row",
    "quick": "single_row",
    "looks": "representation",
    "disguised": "representation",
    "kin": "related_entries",
    "border": "contracts",
    "reckon": "compute",
    "anew": "again",
    "beside": "detached",
    "sole": "one_to_one",
    "told": "notify",
    "came": "inserted",
    "went": "deleted",
    "gone": "deleted",
    "flip": "transition",
    "fill": "backfill",
    "fills": "backfills",
    "filling": "backfill",
    "whole": "all, full",
    "price": "cost",
    "prices": "costs",
    "priced": "cost",
    "pieces": "chunks",
}
"""Words that names do not use, and what they say instead."""

PARTICIPLES = frozenset(
    "made kept held given told shown written sent found taken done gone known seen left begun met"
    " built bound drawn grown thrown chosen hidden broken spoken lost begun put_aside come went"
    " meant paid read_back said sold spent stood thought undone won worn torn".split()
)
NOT_PARTICIPLES = frozenset(
    "feed seed need speed embed indeed proceed succeed exceed hundred bleed breed weed shed red bed"
    " string thing nothing everything anything ring king spring setting mapping heading padding"
    " encoding ordering binding grouping meaning spelling reading building timing ceiling sibling"
    " ping bring sting wing during missing warning substring housekeeping scaling staging bound"
    " quoting".split()
)


PRESCRIBED = frozenset(
    "close commit connect connection cursor description execute executemany fetchall fetchmany"
    " fetchone rollback rowcount rownumber setinputsizes setoutputsize".split()
)
"""Names that PEP 249 prescribes: one word, and not ours to choose."""


@dataclass(slots=True)
class NameCounts:
    """What was found in one tree."""

    functions: int = 0
    one_word: int = 0
    participles: list[str] = field(default_factory=list)
    coined: list[str] = field(default_factory=list)
    classes: Counter[str] = field(default_factory=Counter)

    @property
    def one_word_share(self) -> float:
        return self.one_word / self.functions if self.functions else 0.0

    @property
    def repeated_classes(self) -> dict[str, int]:
        return {name: count for name, count in self.classes.items() if count > 1}


def count_names(root: Path) -> NameCounts:
    """The names of the product under `root`."""
    counts = NameCounts()
    for path in sorted((root / "src").rglob("*.py")):
        where = str(path.relative_to(root))
        if is_participle(path.stem):
            counts.participles.append(f"{where}: module")
        if path.stem in COINED:
            counts.coined.append(f"{where}: module")
        for node in ast.walk(ast.parse(path.read_text())):
            _count_definition(counts, where, node)
    return counts


def _count_definition(counts: NameCounts, where: str, node: ast.AST) -> None:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
            if is_dunder(name) or name in PRESCRIBED:
                return
            counts.functions += 1
            counts.one_word += len(split_words(name)) == 1
        case ast.ClassDef(name=name):
            if not name.startswith("_"):
                counts.classes[name] += 1
        case _:
            return
    words = split_words(name)
    if len(words) == 1 and is_participle(words[0]):
        counts.participles.append(f"{where}:{node.lineno}: {name}")
    counts.coined += [f"{where}:{node.lineno}: {name}" for word in words if word in COINED]


def split_words(name: str) -> list[str]:
    """`_encode_key` and `EncodeKey` are encode, key."""
    plain = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return [word for word in plain.split("_") if word]


def is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def is_participle(word: str) -> bool:
    if word in NOT_PARTICIPLES:
        return False
    return word in PARTICIPLES or (len(word) > 4 and word.endswith(("ed", "ing")))


def count_files(root: Path) -> dict[str, int]:
    """Folder to the modules directly in it, for the product and its tests."""
    counts: Counter[str] = Counter()
    for top in ("src", "tests"):
        for path in (root / top).rglob("*.py"):
            if path.name != "__init__.py" and "__pycache__" not in path.parts:
                counts[str(path.parent.relative_to(root))] += 1
    return dict(counts)


def check_folders(root: Path) -> list[str]:
    """Folders with more modules than a reader takes in at a glance."""
    return [
        f"{folder}: {count} modules, at most {FOLDER_FILES_MAX}; split it by what they are about"
        for folder, count in sorted(count_files(root).items())
        if count > FOLDER_FILES_MAX
    ]


def check_ratchet(root: Path) -> list[str]:
    """Counts of names that went up, or down without the ratchet following."""
    path = root / RATCHET
    allowed = tomllib.loads(path.read_text()).get("names", {}) if path.exists() else {}
    return list(_judge_counts(count_names(root), allowed))


def _judge_counts(counts: NameCounts, allowed: dict[str, float]) -> Iterator[str]:
    share = round(100 * counts.one_word_share, 1)
    limit = allowed.get("one_word_percent_max", 40)
    if share > limit:
        yield f"{share} % of function names are one word, {limit} % are allowed"
    for what, found in (
        ("participles", counts.participles),
        ("coined", counts.coined),
        ("repeated_classes", sorted(counts.repeated_classes)),
    ):
        most = allowed.get(what, 0)
        if len(found) > most:
            yield f"{what}: {len(found)} names, {most} are allowed:\n  " + "\n  ".join(found)
        elif len(found) < most:
            yield f"{what}: {len(found)} names; lower the number in {RATCHET}"


def print_report(root: Path) -> str:
    """Files a folder, names and words, for a person to read."""
    counts = count_names(root)
    lines = [f"{'modules':>8}  folder"]
    sizes = sorted(count_files(root).items(), key=lambda item: (-item[1], item[0]))
    lines += [f"{count:>8}  {folder}" for folder, count in sizes if count > 8]
    lines += [
        "",
        f"functions          {counts.functions}",
        f"one-word names     {counts.one_word} ({100 * counts.one_word_share:.1f} %)",
        f"bare participles   {len(counts.participles)}",
        f"coined words       {len(counts.coined)}",
        f"classes            {sum(counts.classes.values())}",
        f"repeated classes   {', '.join(sorted(counts.repeated_classes)) or 'none'}",
    ]
    return "\n".join(lines)
