"""Every registered function, over edge values: Python form and SQL form answer as PostgreSQL.

BELVEDERE_PROFILE=full tries every combination the corpus allows; BELVEDERE_SEED changes the sample.
"""

from __future__ import annotations

import pytest

from belvedere.plan.functions import FunctionKind
from belvedere.plan.functions.registry import FAMILIES
from tests.oracle.postgres import Postgres
from tests.plan.functions.aggregate_cases import aggregations
from tests.plan.functions.cases import (
    OF_RECORDS,
    OWN,
    SEED,
    calls,
    casts_without_names,
    overloads,
)
from tests.plan.functions.compare import EXCLUSIONS, compare
from tests.plan.functions.engines import Duck

_COMPARED = (FunctionKind.SCALAR, FunctionKind.SET)


@pytest.mark.parametrize("family", [family.__name__.rpartition(".")[2] for family in FAMILIES])
def test_functions_equal_postgres(postgres: Postgres, duck: Duck, family: str) -> None:
    [module] = [one for one in FAMILIES if one.__name__.endswith(f".{family}")]
    functions = [
        function
        for function in module.FUNCTIONS
        if function.kind in _COMPARED and function.name not in OF_RECORDS | OWN
    ]
    found = compare(postgres, duck, functions)
    assert not found, f"seed {SEED}\n" + "\n".join(map(str, found[:8]))


def test_casts_equal_postgres(postgres: Postgres, duck: Duck) -> None:
    found = compare(postgres, duck, casts_without_names())
    assert not found, f"seed {SEED}\n" + "\n".join(map(str, found[:8]))


def test_every_function_has_generated_cases() -> None:
    without = [f.signature for kind in _COMPARED for f in overloads(kind) if not calls(f)]
    without += [f.signature for f in overloads(FunctionKind.AGGREGATE) if not aggregations(f)]
    assert not without


def test_every_exclusion_has_a_reason() -> None:
    entries = [entry for several in EXCLUSIONS.values() for entry in several]
    assert entries
    assert all(len(entry["reason"]) > 15 for entry in entries)
