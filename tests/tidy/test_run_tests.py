"""The test runner reports what happened, and fails whenever something was not really tested."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import run_tests
from tools.run_tests import Part

CONFIG = '[tool.pytest.ini_options]\nmarkers = ["slow"]\naddopts = ["-p", "no:cacheprovider"]\n'
PASSES = "def test_a(): assert True\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # The runs inside these tests need no plugin, and start in half the time without.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "pyproject.toml").write_text(CONFIG)
    plant(tmp_path, "tests/kv/test_kv.py", PASSES)
    return tmp_path


def plant(root: Path, path: str, text: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def run(root: Path, capsys: pytest.CaptureFixture[str], *arguments: str, **limits: float) -> Result:
    parts = [Part(path.name) for path in sorted((root / "tests").iterdir()) if path.is_dir()]
    parts = [Part(part.name, **limits) for part in parts]  # type: ignore[arg-type]
    code = run_tests.main(arguments, root, parts)
    return code, capsys.readouterr().out.splitlines()


Result = tuple[int, list[str]]


def test_counts_are_summed_over_parts(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(tree, "tests/sql/test_sql.py", "def test_a(): assert True\ndef test_b(): assert True\n")
    code, lines = run(tree, capsys)
    assert code == 0
    assert lines[-1] == "3 passed, 0 failed, 0 skipped"
    table = {line.split()[0]: line.split()[1:] for line in lines[-4:-1]}
    assert table["kv"][1:] == ["1", "0", "0"]
    assert table["sql"][1:] == ["2", "0", "0"]
    assert float(table["total"][0]) >= 0


def test_failure_and_error_fail_the_run(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(tree, "tests/kv/test_kv.py", PASSES + "def test_b(): assert 0\ndef test_c(none): ...\n")
    code, lines = run(tree, capsys)
    assert code == 1
    assert lines[-1] == "1 passed, 2 failed, 0 skipped"
    assert any("FAILED" in line for line in lines)


def test_test_file_that_cannot_be_imported_fails_the_run(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(tree, "tests/kv/test_more.py", "import no_such_module\n")
    code, lines = run(tree, capsys)
    assert code == 1
    assert lines[-1].split(", ")[1] == "1 failed"


def test_skip_fails_the_run_unless_listed_with_a_reason(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    skipping = "import pytest\n@pytest.mark.skip\ndef test_b(): ...\n" + PASSES
    plant(tree, "tests/kv/test_kv.py", skipping)
    code, lines = run(tree, capsys)
    assert code == 1
    assert (
        "FAILED kv: skipped without leave in allowed_skips.toml: tests.kv.test_kv::test_b" in lines
    )
    assert lines[-1] == "1 passed, 0 failed, 1 skipped"
    allow(tree, "tests.kv.test_kv::test_b", "no cluster here")
    code, lines = run(tree, capsys)
    assert code == 0
    assert lines[-1] == "1 passed, 0 failed, 1 skipped"
    allow(tree, "tests.kv.test_kv::test_b", " ")
    with pytest.raises(SystemExit, match="no reason"):
        run(tree, capsys)


def test_expected_failure_counts_as_a_skip(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(tree, "tests/kv/test_kv.py", "import pytest\n@pytest.mark.xfail\ndef test_b(): 1 / 0\n")
    code, lines = run(tree, capsys)
    assert code == 1
    assert lines[-1] == "0 passed, 0 failed, 1 skipped"


def allow(root: Path, test: str, reason: str) -> None:
    plant(
        root,
        "tests/allowed_skips.toml",
        f'[[skip]]\ntest = "{test}"\nreason = "{reason}"\n',
    )


def test_part_without_tests_fails_the_run(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plant(tree, "tests/kv/test_kv.py", "")
    code, lines = run(tree, capsys)
    assert code == 1
    assert "FAILED kv: ran no tests" in lines
    assert lines[-1] == "0 passed, 1 failed, 0 skipped"


def test_part_whose_tests_are_all_deselected_fails_the_run(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, lines = run(tree, capsys, "kv", "--", "-k", "nothing_like_this")
    assert code == 1
    assert "FAILED kv: ran no tests" in lines


def test_crash_of_the_test_process_fails_the_run(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(tree, "tests/kv/test_kv.py", "import os\ndef test_a(): os._exit(0)\n")
    code, lines = run(tree, capsys)
    assert code == 1
    assert lines[-1].split(", ")[1] == "1 failed"


def test_part_over_its_time_limit_is_killed_and_fails(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(tree, "tests/kv/test_kv.py", "import threading\ndef test_a(): threading.Event().wait()\n")
    code, lines = run(tree, capsys, minutes_max=0.03)
    assert code == 1
    assert "FAILED kv: was killed at its time limit" in lines
    assert lines[-1] == "0 passed, 1 failed, 0 skipped"


def test_directory_that_is_in_no_part_fails_the_run(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(tree, "tests/new/test_new.py", PASSES)
    assert run_tests.main([], tree, [Part("kv")]) == 2
    assert "tests/new is not in PARTS" in capsys.readouterr().out


def test_root_test_file_without_the_root_part_fails_the_run(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plant(tree, "tests/test_errors.py", PASSES)
    assert run_tests.main([], tree, [Part("kv")]) == 2
    assert "need the part 'root'" in capsys.readouterr().out
    assert run_tests.main(["root"], tree, [Part("kv"), Part("root")]) == 0


def test_part_without_a_directory_fails_the_run(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_tests.main([], tree, [Part("kv"), Part("gone")]) == 2
    assert "part 'gone' has no tests" in capsys.readouterr().out
    assert run_tests.main(["kv"], tree, [Part("kv"), Part("gone")]) == 0


def test_unknown_part_is_refused(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_tests.main(["vieuws"], tree, [Part("kv")]) == 2
    assert capsys.readouterr().out == "there is no part 'vieuws'\n"


def test_fast_leaves_out_slow_parts_and_slow_tests(
    tree: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = "import pytest\n@pytest.mark.slow\ndef test_slow(): assert 0\n"
    plant(tree, "tests/kv/test_kv.py", slow + PASSES)
    plant(tree, "tests/spark/test_spark.py", "def test_b(): assert 0\n")
    parts = [Part("kv"), Part("spark", fast=False)]
    assert run_tests.main(["--fast"], tree, parts) == 0
    assert capsys.readouterr().out.endswith("\n1 passed, 0 failed, 0 skipped\n")
    assert run_tests.main([], tree, parts) == 1
