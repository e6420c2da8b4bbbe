"""Set-up installs once, starts over after an interruption, and says what is missing.

The script runs in a tree of its own, with a Python, an apt and a user id that only write down what
they were asked for. That it works with the real ones is seen on every fresh clone.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

import pytest

SETUP = Path(__file__).resolve().parents[2] / "tools" / "setup.sh"
TOOLS = "bash cat chmod cp cut dirname env flock mkdir rm sha256sum stat touch".split()

# Stands for python3 and, copied, for .venv/bin/python.
PYTHON = """#!/usr/bin/env bash
case "$*" in
*version_info\\ \\<*) exit ${OLD:-0} ;;
*ensurepip,*) [ -z "${NO_VENV:-}" ] || [ -e "$TREE/venv_installed" ] ;;
*print*) echo 3.11 ;;
--version) echo Python 3.11 ;;
"-m venv --clear .venv")
    echo venv >>"$TREE/calls"
    rm -rf .venv; mkdir -p .venv/bin .venv/lib/python3/site-packages; cp "$0" .venv/bin/python ;;
*"pip --version"*) exit ${NO_PIP:-0} ;;
"-m ensurepip") echo ensurepip >>"$TREE/calls"; exit ${ENSUREPIP_FAILS:-0} ;;
*"pip install"*--require-hashes*)
    echo packages >>"$TREE/calls"
    [ -z "${CUT_SHORT:-}" ] || { touch .venv/lib/python3/site-packages/half; kill -9 $PPID; }
    [ -z "${HALF:-}" ] || touch .venv/lib/python3/site-packages/half
    exit ${PIP_FAILS:-0} ;;
"-m ensurepip "*) echo "unknown option: $*" >&2; exit 2 ;;
*"pip install"*--editable*) echo editable >>"$TREE/calls" ;;
esac
"""
APT = """#!/usr/bin/env bash
[ "$1" = install ] && { echo "apt ${*: -1}" >>"$TREE/calls"; touch "$TREE/venv_installed"; }
exit 0
"""


@dataclass
class Machine:
    tree: Path
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, name: str, text: str) -> None:
        path = self.tree / "bin" / name
        path.write_text(text)
        path.chmod(0o755)

    def run(self, **environment: str) -> tuple[int, str]:
        """Exit code and messages. Only this machine's own commands are on the PATH."""
        done = subprocess.run(
            [self.tree / "bin" / "bash", "tools/setup.sh"],
            cwd=self.tree,
            env={"PATH": str(self.tree / "bin"), "TREE": str(self.tree), **environment},
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stderr

    def calls(self) -> list[str]:
        """What was asked for since the last look."""
        path = self.tree / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    (tmp_path / "bin").mkdir()
    (tmp_path / "tools").mkdir()
    shutil.copy(SETUP, tmp_path / "tools" / "setup.sh")
    (tmp_path / "requirements.lock").write_text("one==1\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, tool
        (tmp_path / "bin" / tool).symlink_to(found)
    made = Machine(tmp_path)
    made.command("python3", PYTHON)
    made.command("java", "#!/usr/bin/env bash\n")
    made.command("mvn", "#!/usr/bin/env bash\n")
    made.command("id", "#!/usr/bin/env bash\necho ${USER_ID:-1000}\n")
    return made


def test_second_run_installs_nothing(machine: Machine) -> None:
    assert machine.run()[0] == 0
    assert machine.calls() == ["venv", "packages", "editable"]
    assert machine.run() == (0, "")
    assert machine.calls() == []


@pytest.mark.parametrize("changed", ["requirements.lock", "pyproject.toml", "tools/setup.sh"])
def test_change_of_an_input_installs_again_into_the_same_environment(
    machine: Machine, changed: str
) -> None:
    machine.run()
    machine.calls()
    path = machine.tree / changed
    path.write_text(path.read_text() + "\n# changed\n")
    assert machine.run()[0] == 0
    assert machine.calls() == ["packages", "editable"]


@pytest.mark.parametrize("how", [{"CUT_SHORT": "1"}, {"HALF": "1", "PIP_FAILS": "1"}])
def test_run_after_an_interrupted_one_starts_from_an_empty_environment(
    machine: Machine, how: dict[str, str]
) -> None:
    code, _ = machine.run(**how)
    assert code != 0
    assert machine.calls() == ["venv", "packages"]
    code, messages = machine.run()
    assert code == 0
    assert "setup: the last run was cut short: starting from an empty .venv" in messages
    assert machine.calls() == ["venv", "packages", "editable"]
    assert machine.run() == (0, "")


@pytest.mark.parametrize(
    "how", [{"PIP_FAILS": "1"}, {"NO_PIP": "1", "ENSUREPIP_FAILS": "1"}], ids=["pip", "ensurepip"]
)
def test_failure_before_anything_was_copied_keeps_the_environment(
    machine: Machine, how: dict[str, str]
) -> None:
    machine.run()
    (machine.tree / "requirements.lock").write_text("one==2\n")
    own = machine.tree / ".venv" / "own"
    own.touch()
    assert machine.run(**how)[0] != 0
    machine.calls()
    assert machine.run()[0] == 0
    assert machine.calls() == ["packages", "editable"]
    assert own.exists()


def test_environment_without_pip_gets_it(machine: Machine) -> None:
    assert machine.run(NO_PIP="1")[0] == 0
    assert machine.calls() == ["venv", "ensurepip", "packages", "editable"]


def test_old_python_is_refused_with_a_message(machine: Machine) -> None:
    code, messages = machine.run(OLD="1")
    assert code != 0
    assert messages.startswith("setup: Python 3.11 or newer is needed")


def test_missing_venv_module_comes_by_apt_for_root(machine: Machine) -> None:
    machine.command("apt-get", APT)
    assert machine.run(NO_VENV="1", USER_ID="0")[0] == 0
    assert machine.calls() == ["apt python3.11-venv", "venv", "packages", "editable"]


def test_missing_venv_module_is_one_message_for_others(machine: Machine) -> None:
    machine.command("apt-get", APT)
    code, messages = machine.run(NO_VENV="1")
    assert code != 0
    assert messages == "setup: the venv module of python3 is missing; install python3.11-venv\n"
    assert machine.calls() == []


def test_missing_java_comes_by_apt_for_root(machine: Machine) -> None:
    (machine.tree / "bin" / "java").unlink()
    machine.command("apt-get", APT)
    assert machine.run(USER_ID="0")[0] == 0
    assert machine.calls() == ["venv", "apt openjdk-17-jre-headless", "packages", "editable"]


def test_missing_maven_comes_by_apt_for_root(machine: Machine) -> None:
    (machine.tree / "bin" / "mvn").unlink()
    machine.command("apt-get", APT)
    assert machine.run(USER_ID="0")[0] == 0
    assert machine.calls() == ["venv", "apt maven", "packages", "editable"]


def test_missing_maven_is_one_message_for_others_and_stops_nothing(machine: Machine) -> None:
    (machine.tree / "bin" / "mvn").unlink()
    code, messages = machine.run()
    assert code == 0
    assert machine.calls() == ["venv", "packages", "editable"]
    assert messages.count("Maven is missing") == 1


def test_missing_java_is_one_message_for_others_and_stops_nothing(machine: Machine) -> None:
    (machine.tree / "bin" / "java").unlink()
    machine.command("apt-get", APT)
    code, messages = machine.run()
    assert code == 0
    assert machine.calls() == ["venv", "packages", "editable"]
    assert messages.count("Java 17 is missing") == 1
    code, messages = machine.run()
    assert (code, machine.calls()) == (0, [])
    assert messages.startswith("setup: Java 17 is missing")
    assert messages.count("\n") == 1
