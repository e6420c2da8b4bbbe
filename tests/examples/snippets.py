"""Takes the code blocks out of a Markdown page and runs them, as a reader would.

Blocks tagged `python` form one program, in the order of the page. Blocks tagged `sh` form one shell
script, with the commands of this environment on the PATH. Other tags (`console`, `text`, `sql`) are
only shown. Everything runs in an empty directory.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

TIMEOUT_S = 120


def blocks(page: str, tag: str) -> list[str]:
    return re.findall(rf"^```{tag}\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)


def run_page(page: str, directory: Path) -> dict[str, str]:
    """Run both programs of a page; their output by tag. A page without code gives an empty one."""
    programs = {
        "python": [sys.executable, "-W", "error", "-c"],
        "sh": ["bash", "-euo", "pipefail", "-c"],
    }
    outputs = {}
    for tag, command in programs.items():
        if found := blocks(page, tag):
            outputs[tag] = run([*command, "\n".join(found)], directory)
    return outputs


def run(command: list[str], directory: Path) -> str:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=directory,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout
