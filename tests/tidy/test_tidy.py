"""The repository is tidy, and each check notices when it is not."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tools import tidy

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("check", tidy.CHECKS, ids=lambda check: check.__name__)
def test_repository_is_tidy(check: Callable[[Path], list[str]]) -> None:
    problems = check(REPOSITORY)
    assert not problems, "\n".join(problems)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A small tree that passes every check."""
    plant(tmp_path, "src/belvedere/errors.py", '"""Errors."""\n')
    plant(tmp_path, "src/belvedere/kv/memory.py", '"""A store."""\n')
    plant(tmp_path, "tests/kv/test_memory.py", "def test_it(): assert True\n")
    plant(tmp_path, "docs/glossary.md", "| position | a place | `lsn`, offset |\n")
    for check in tidy.CHECKS:
        assert check(tmp_path) == []
    return tmp_path


def plant(root: Path, path: str, text: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def lines(count: int) -> str:
    return '"""Long."""\n' + "x = 1\n" * (count - 1)


def function(count: int, name: str = "long") -> str:
    return f'"""Long."""\ndef {name}():\n' + "    x = 1\n" * (count - 1)


def test_file_over_500_lines_needs_a_reason(tree: Path) -> None:
    plant(tree, "src/belvedere/kv/memory.py", lines(500))
    assert tidy.check_lengths(tree) == []
    plant(tree, "src/belvedere/kv/memory.py", lines(501))
    assert "501 lines, over 500" in tidy.check_lengths(tree)[0]
    ratchet(tree, "file", "src/belvedere/kv/memory.py", "", 501)
    assert tidy.check_lengths(tree) == []


def test_file_over_800_lines_fails_even_with_a_reason(tree: Path) -> None:
    plant(tree, "tests/kv/test_memory.py", lines(801))
    ratchet(tree, "file", "tests/kv/test_memory.py", "", 900)
    assert "800 is the most" in tidy.check_lengths(tree)[0]


def test_function_over_60_lines_fails(tree: Path) -> None:
    plant(tree, "src/belvedere/kv/memory.py", function(60))
    assert tidy.check_lengths(tree) == []
    plant(tree, "src/belvedere/kv/memory.py", function(61))
    assert "long: 61 lines, over 60" in tidy.check_lengths(tree)[0]


def test_method_over_60_lines_fails_with_its_class_named(tree: Path) -> None:
    body = "".join("    " + line + "\n" for line in function(61).splitlines()[1:])
    plant(tree, "src/belvedere/kv/memory.py", '"""M."""\nclass Store:\n' + body)
    assert "Store.long: 61 lines" in tidy.check_lengths(tree)[0]


def test_listed_function_may_not_grow_and_its_number_follows_it_down(tree: Path) -> None:
    plant(tree, "src/belvedere/kv/memory.py", function(90))
    ratchet(tree, "function", "src/belvedere/kv/memory.py", "long", 89)
    assert "grew to 90" in tidy.check_lengths(tree)[0]
    ratchet(tree, "function", "src/belvedere/kv/memory.py", "long", 90)
    assert tidy.check_lengths(tree) == []
    ratchet(tree, "function", "src/belvedere/kv/memory.py", "long", 111)
    assert "lower its number" in tidy.check_lengths(tree)[0]


def test_ratchet_entry_that_is_no_longer_needed_fails(tree: Path) -> None:
    ratchet(tree, "function", "src/belvedere/kv/memory.py", "gone", 70)
    assert "remove src/belvedere/kv/memory.py gone" in tidy.check_lengths(tree)[0]


def test_ratchet_entry_without_a_reason_is_refused(tree: Path) -> None:
    ratchet(tree, "file", "src/belvedere/kv/memory.py", "", 600, reason=" ")
    with pytest.raises(ValueError, match="gives no reason"):
        tidy.check_lengths(tree)


def ratchet(
    root: Path, kind: str, path: str, name: str, count: int, reason: str = "a table"
) -> None:
    named = f'name = "{name}"\n' if name else ""
    text = f'[[{kind}]]\npath = "{path}"\n{named}lines = {count}\nreason = "{reason}"\n'
    plant(root, str(tidy.RATCHET), text)


@pytest.mark.parametrize("path", ["src/belvedere/kv/new.py", "tools/new.py", "examples/new.py"])
def test_module_without_docstring_fails(tree: Path, path: str) -> None:
    plant(tree, path, "x = 1\n")
    assert tidy.check_docstrings(tree) == [f"{path}: the module has no docstring"]


@pytest.mark.parametrize(
    "swallowing",
    [
        "try:\n    f()\nexcept Exception:\n    pass\n",
        "try:\n    f()\nexcept BaseException as e:\n    ...\n",
        "try:\n    f()\nexcept:\n    pass\n",
        "for x in y:\n try:\n  f()\n except (ValueError, Exception):\n  continue\n",
        "with contextlib.suppress(Exception):\n    f()\n",
    ],
)
def test_swallowed_error_fails(tree: Path, swallowing: str) -> None:
    plant(tree, "src/belvedere/kv/memory.py", swallowing)
    assert "swallows every error" in tidy.check_swallowed(tree)[0]


@pytest.mark.parametrize(
    "handled",
    [
        "try:\n    f()\nexcept KeyError:\n    pass\n",
        "try:\n    f()\nexcept Exception as error:\n    raise Corruption('x') from error\n",
    ],
)
def test_handled_error_passes(tree: Path, handled: str) -> None:
    plant(tree, "src/belvedere/kv/memory.py", handled)
    assert tidy.check_swallowed(tree) == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("see /wor" + "k/main/x", "a path of one machine"),
        ("cd /roo" + "t/x", "a path of one machine"),
        ("fixes issue" + " #12", "a tracker's number"),
        ("# TO" + "DO later", "unfinished work"),
        ("# FIX" + "ME", "unfinished work"),
        ("https://pypi.o" + "rg/simple", "a package index"),
        ("Co-author" + "ed-by: x", "who wrote it"),
    ],
)
@pytest.mark.parametrize("path", ["src/belvedere/kv/memory.py", "README.md", ".ci/run"])
def test_unwelcome_words_fail(tree: Path, path: str, line: str, what: str) -> None:
    plant(tree, path, f"fine\n{line}\n")
    assert tidy.check_words(tree) == [f"{path}:2: names {what}"]


def test_words_of_installed_packages_do_not_count(tree: Path) -> None:
    plant(tree, ".venv/lib/other.py", "# TO" + "DO\n")
    assert tidy.check_words(tree) == []


def test_subpackage_without_tests_fails(tree: Path) -> None:
    plant(tree, "src/belvedere/codec/rows.py", '"""Rows."""\n')
    assert tidy.check_mirror(tree) == ["src/belvedere/codec: tests/codec has no test_*.py"]


@pytest.mark.parametrize(
    "code",
    ["def lsn_of(x): ...\n", "class LastLsn: ...\n", "def f(lsn): ...\n", "last_lsn = 1\n"],
)
def test_name_that_the_glossary_rules_out_fails(tree: Path, code: str) -> None:
    plant(tree, "src/belvedere/kv/memory.py", code)
    assert "the glossary says 'position'" in tidy.check_names(tree)[0]


def test_word_outside_code_font_is_not_ruled_out(tree: Path) -> None:
    plant(tree, "src/belvedere/kv/memory.py", "offset = 1\n")
    assert tidy.check_names(tree) == []


@pytest.mark.parametrize("name", ["LockManager", "RowHelper", "StoreBase", "StoreImpl"])
def test_vague_class_name_fails(tree: Path, name: str) -> None:
    plant(tree, "src/belvedere/kv/memory.py", f"class {name}: ...\n")
    assert f"{name} says nothing" in tidy.check_names(tree)[0]


def test_vague_module_name_fails(tree: Path) -> None:
    plant(tree, "src/belvedere/kv/utils.py", '"""Things."""\n')
    assert "utils says nothing" in tidy.check_names(tree)[0]


def test_repository_glossary_rules_words_out() -> None:
    words = tidy.ruled_out((REPOSITORY / "docs" / "glossary.md").read_text())
    assert words["lsn"] == "position"
    assert len(words) >= 8


def test_package_that_does_not_list_its_modules_fails(tree: Path) -> None:
    plant(tree, "src/belvedere/kv/__init__.py", '"""Stores.\n\nmemory    a store\n"""\n')
    assert tidy.check_front_pages(tree) == []
    plant(tree, "src/belvedere/kv/rocksdb.py", '"""A store."""\n')
    assert "does not name rocksdb" in tidy.check_front_pages(tree)[0]
    plant(tree, "src/belvedere/kv/doubles/__init__.py", '"""Doubles."""\n')
    assert "does not name doubles, rocksdb" in tidy.check_front_pages(tree)[0]
