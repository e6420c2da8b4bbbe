"""Cases of the law: made from a seed, written to files, read back, and made smaller."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from tests.properties.views.generate.definitions import Generator, arrays, sums
from tests.properties.views.generate.histories import Case, Histories, Step
from tests.properties.views.generate.schemas import Table, random_tables
from tests.properties.views.generate.shapes import MORE, TOWERS

TOWER_EVERY = 5
REGRESSIONS = Path(__file__).parents[1] / "regressions"


def random_case(seed: int, views: int, steps: int, *, wide: bool = False) -> Case:
    """A case of single blocks, or a `wide` one, of every shape there is; of those every fifth is a
    tower, in which views stand on views as high as there are any."""
    rng = random.Random(f"views/{seed}")
    tables = random_tables(rng)
    generator = _generator(rng, tables, seed) if wide else Generator(rng, tables)
    made = [generator.definition(f"v{number}") for number in range(views)]
    heavy = max(view.weight for view in made) > 2
    histories = Histories(rng, tables, 10 if heavy else rng.choice((12, 40)), across=wide)
    return Case(
        tables=tuple(table.ddl(deferrable=False) for table in tables),
        tables_deferrable=tuple(table.ddl(deferrable=True) for table in tables),
        views=tuple(
            {
                "name": view.name,
                "text": sums(view.text),
                "query": sums(view.query),
                "exact": arrays(view.query),
                "columns": [[c.name, c.type, c.kind] for c in view.columns],
            }
            for view in made
        ),
        first=tuple(histories.load()) if rng.random() < 0.7 else (),
        steps=tuple(histories.step(views) for _ in range(steps)),
        seed=seed,
    )


def _generator(rng: random.Random, tables: Sequence[Table], seed: int) -> Generator:
    if seed % TOWER_EVERY == 0:
        return Generator(rng, tables, TOWERS, 1.0)
    return Generator(rng, tables, MORE)


def save(case: Case, path: Path) -> None:
    path.write_text(json.dumps(asdict(case), indent=1, ensure_ascii=True) + "\n")


def load(path: Path) -> Case:
    data = json.loads(path.read_text())
    steps = tuple(
        Step(tuple(s["statements"]), s["commit"], tuple(s["catch_up"]), s["look_inside"])
        for s in data.pop("steps")
    )
    plain = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
    }
    return Case(**plain, steps=steps)


def shrunk(case: Case, fails: Callable[[Case], bool], seconds: float) -> Case:
    """A smaller case that fails too, found in about this time."""
    end = time.monotonic() + seconds
    progress = True
    while progress and time.monotonic() < end:
        progress = False
        for smaller in _smaller(case):
            if time.monotonic() > end:
                break
            if fails(smaller):
                case, progress = smaller, True
                break
    return case


def _smaller(case: Case) -> Iterator[Case]:
    for size in (len(case.steps) // 2, len(case.steps) // 4, 3, 1):
        for start in range(0, len(case.steps), max(size, 1)):
            kept = case.steps[:start] + case.steps[start + max(size, 1) :]
            if len(kept) < len(case.steps):
                yield replace(case, steps=kept)
    for number in range(len(case.views)):
        yield replace(case, views=case.views[:number] + case.views[number + 1 :])
    for number in range(len(case.first)):
        yield replace(case, first=case.first[:number] + case.first[number + 1 :])
    for number, step in enumerate(case.steps):
        for at in range(len(step.statements)):
            statements = step.statements[:at] + step.statements[at + 1 :]
            if statements:
                smaller = replace(step, statements=statements)
                yield replace(
                    case, steps=(*case.steps[:number], smaller, *case.steps[number + 1 :])
                )
