"""Names that say too little are counted, and the counts only go down."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import names


def plant(root: Path, path: str, text: str) -> None:
    target = root / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def test_one_word_names_are_counted_without_dunders(tmp_path: Path) -> None:
    code = "def run(): ...\ndef _made_it(): ...\nclass A:\n    def __init__(self): ...\n"
    plant(tmp_path, "src/belvedere/kv/a.py", code)
    counts = names.count_names(tmp_path)
    assert (counts.functions, counts.one_word) == (2, 1)


@pytest.mark.parametrize("name", ["joined", "_made", "kept", "filling", "writing"])
def test_bare_participle_is_counted(tmp_path: Path, name: str) -> None:
    plant(tmp_path, "src/belvedere/kv/a.py", f"def {name}(): ...\n")
    assert names.count_names(tmp_path).participles == [f"src/belvedere/kv/a.py:1: {name}"]


@pytest.mark.parametrize("name", ["feed", "string", "sorted_rows", "seed", "make_string"])
def test_noun_and_longer_name_are_no_participles(tmp_path: Path, name: str) -> None:
    plant(tmp_path, "src/belvedere/kv/a.py", f"def {name}(): ...\n")
    assert names.count_names(tmp_path).participles == []


def test_participle_as_a_class_and_as_a_module_counts(tmp_path: Path) -> None:
    plant(tmp_path, "src/belvedere/kv/looking.py", "class Held: ...\n")
    assert len(names.count_names(tmp_path).participles) == 2


@pytest.mark.parametrize("name", ["Keeper", "fill_view", "by_looks"])
def test_coined_word_is_counted(tmp_path: Path, name: str) -> None:
    kind = "class" if name[0].isupper() else "def"
    plant(tmp_path, "src/belvedere/kv/a.py", f"{kind} {name}(): ...\n")
    assert names.count_names(tmp_path).coined == [f"src/belvedere/kv/a.py:1: {name}"]


def test_public_class_name_used_twice_is_counted(tmp_path: Path) -> None:
    plant(tmp_path, "src/belvedere/kv/a.py", "class State: ...\nclass _Own: ...\n")
    plant(tmp_path, "src/belvedere/kv/b.py", "class State: ...\nclass _Own: ...\n")
    assert names.count_names(tmp_path).repeated_classes == {"State": 2}


def test_count_above_the_ratchet_fails_and_below_it_asks_to_follow(tmp_path: Path) -> None:
    plant(tmp_path, "src/belvedere/kv/a.py", "def joined(): ...\ndef split_rows(): ...\n")
    plant(tmp_path, "tests/tidy/ratchet.toml", "[names]\none_word_percent_max = 50\n")
    assert "participles: 1 names, 0 are allowed" in names.check_ratchet(tmp_path)[0]
    plant(tmp_path, "tests/tidy/ratchet.toml", _ratchet(50, 1))
    assert names.check_ratchet(tmp_path) == []
    plant(tmp_path, "tests/tidy/ratchet.toml", _ratchet(50, 2))
    assert "lower the number" in names.check_ratchet(tmp_path)[0]
    plant(tmp_path, "tests/tidy/ratchet.toml", _ratchet(49, 1))
    assert "50.0 % of function names are one word" in names.check_ratchet(tmp_path)[0]


def _ratchet(percent: int, participles: int) -> str:
    return f"[names]\none_word_percent_max = {percent}\nparticiples = {participles}\n"


def test_folder_with_too_many_modules_fails(tmp_path: Path) -> None:
    for number in range(names.FOLDER_FILES_MAX):
        plant(tmp_path, f"src/belvedere/kv/m{number}.py", "")
    plant(tmp_path, "src/belvedere/kv/__init__.py", "")
    assert names.check_folders(tmp_path) == []
    plant(tmp_path, "src/belvedere/kv/more.py", "")
    assert "src/belvedere/kv: 17 modules" in names.check_folders(tmp_path)[0]


def test_report_prints_folders_names_and_classes(tmp_path: Path) -> None:
    plant(tmp_path, "src/belvedere/kv/a.py", "def run(): ...\nclass Store: ...\n")
    report = names.print_report(tmp_path)
    assert "one-word names     1 (100.0 %)" in report
    assert "classes            1" in report
