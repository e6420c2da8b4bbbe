"""The example of the pipeline runs to its end."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "spark_pipeline.py"


def test_the_example_runs_and_says_what_it_did(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE)],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    said = done.stdout
    assert "loaded 2000 rows" in said
    assert "verified by_city at position" in said
    assert said.count("ok is True") == 2
