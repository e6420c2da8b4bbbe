"""Every program in examples/ runs to its end, in an empty directory.

Those that start Spark are run by the tests of the pipeline.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.examples.snippets import run

FOUND = sorted((Path(__file__).resolve().parents[2] / "examples").glob("*.py"))
EXAMPLES = [path for path in FOUND if not path.stem.startswith("spark")]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(example: Path, tmp_path: Path) -> None:
    assert run([sys.executable, "-W", "error", str(example)], tmp_path).strip()
