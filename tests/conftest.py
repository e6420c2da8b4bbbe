"""What all tests share: seeds, Hypothesis settings, golden files.

    pytest --seed 7      random tests and Hypothesis begin at seed 7
    pytest --update      golden files are written anew instead of compared

Without `--seed` every run does the same, so that a green run stays green; other seeds are for
hunting. The seed is in the header of every run.
"""

from __future__ import annotations

import random
import signal
from pathlib import Path

import hypothesis
import pytest
from hypothesis import core

from tests.exact import make_callers_context_useless

make_callers_context_useless()

# A shell lets what it starts in the background ignore interrupts, which tests send to processes
# that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Asserts in modules that test files share explain themselves too.
for part in Path(__file__).parent.iterdir():
    if part.is_dir():
        pytest.register_assert_rewrite(f"tests.{part.name}")

SEED_DEFAULT = 1


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--seed", type=int, default=None, help="where random tests begin")
    parser.addoption("--update", action="store_true", help="write golden files anew")


def pytest_configure(config: pytest.Config) -> None:
    seed = config.getoption("--seed")
    # No deadlines: a slow machine is not a bug. Examples come from the tests' names, unless a
    # seed is asked for.
    hypothesis.settings.register_profile(
        "belvedere",
        deadline=None,
        print_blob=True,
        derandomize=seed is None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("belvedere")
    if seed is not None:
        core.global_force_seed = seed


def pytest_report_header(config: pytest.Config) -> str:
    return f"seed: {_seed(config)} (--seed N for another)"


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """The seed of this run. Print it, or what is derived from it, in the message of a failure."""
    return _seed(request.config)


@pytest.fixture
def rng(seed: int, request: pytest.FixtureRequest) -> random.Random:
    """Randomness of this test alone: it does not change when other tests are added."""
    return random.Random(f"{seed}/{request.node.name}")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update"))


def _seed(config: pytest.Config) -> int:
    given = config.getoption("--seed")
    return SEED_DEFAULT if given is None else int(given)
