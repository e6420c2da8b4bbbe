"""Every mutation still fits the code that ships, and the code that ships has none in it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

import pytest

import belvedere
from tests.mutations.patch import DoesNotApply, before, mutation, patch, restore
from tests.mutations.registry import ALL, ENGINE, REWRITE, ROW, mutated

SOURCE = Path(belvedere.__path__[0])


@pytest.mark.parametrize("name", ALL)
def test_a_mutation_applies_and_goes_again(name: str) -> None:
    functions = [one.function for one in ALL[name].patches]
    codes = [function.__code__ for function in functions]
    with mutated(name):
        for function, code in zip(functions, codes, strict=True):
            assert _work(function.__code__) != _work(code)
    assert [function.__code__ for function in functions] == codes


def _work(code: CodeType) -> tuple[object, ...]:
    return code.co_code, code.co_consts, code.co_names


def test_the_numbers_of_mutations_only_grow() -> None:
    assert len(ENGINE) >= 37
    assert len(ROW) >= 6
    assert len(REWRITE) >= 10
    assert len(ALL) == len(ENGINE) + len(ROW) + len(REWRITE)
    assert all(one.meaning and one.patches for one in ALL.values())


def _answer(given: int) -> int:
    return given + 1


_other_name = _answer


class _Counting:
    __slots__ = ("_count",)

    def __init__(self) -> None:
        self._count = 0

    def step(self) -> Iterator[int]:
        self._count += 1
        yield self._count


def test_a_function_is_changed_under_every_name_and_changed_back() -> None:
    known = mutation("two", patch(_answer, ("given + 1", "given + 2"))).apply()
    assert (_answer(1), _other_name(1)) == (3, 3)
    restore(known)
    assert (_answer(1), _other_name(1)) == (2, 2)


def test_a_method_of_objects_that_are_there_already_is_changed() -> None:
    counting = _Counting()
    by_two = patch(_Counting.step, ("self._count += 1", "self._count += 2"))
    known = mutation("by two", by_two).apply()
    assert list(counting.step()) == [2]
    restore(known)
    assert list(counting.step()) == [3]


@pytest.mark.parametrize("text", ["given + 3", "given"])
def test_a_text_that_is_not_there_exactly_once_is_refused(text: str) -> None:
    code = _answer.__code__
    with pytest.raises(DoesNotApply, match="_answer has"):
        mutation("none", patch(_answer, (text, "0"))).apply()
    assert _answer.__code__ is code


def test_where_one_patch_does_not_apply_none_does() -> None:
    code = _answer.__code__
    both = mutation("half", patch(_answer, ("given + 1", "0")), patch(_Counting.step, ("no", "no")))
    with pytest.raises(DoesNotApply):
        both.apply()
    assert _answer.__code__ is code


def test_a_function_has_one_mutation_at_a_time() -> None:
    two = mutation("two", patch(_answer, ("given + 1", "given + 2")))
    known = two.apply()
    with pytest.raises(DoesNotApply, match="another mutation"):
        two.apply()
    restore(known)
    restore(two.apply())
    assert _answer(1) == 2


def test_lines_come_before_a_text_with_its_indentation() -> None:
    assert before("    a = 1\n", "if b:", "    c") == (
        "    a = 1\n",
        "    if b:\n        c\n    a = 1\n",
    )


def test_the_product_has_no_bugs_to_switch_on() -> None:
    names = re.compile("|".join([r"\bplanted\b", "BELVEDERE_PLANTED", *map(re.escape, ALL)]))
    found = [path for path in sorted(SOURCE.rglob("*.py")) if names.search(path.read_text())]
    assert found == []


def test_an_armed_failpoint_changes_no_path() -> None:
    """Whoever asks whether failpoints are armed does nothing but hit one."""
    wrong = []
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text()
        if path.name == "failpoints.py" or "failpoints" not in text:
            continue
        tree = ast.parse(text)
        guards = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and not node.orelse and all(map(_is_hit, node.body))
            for inner in ast.walk(node)
        }
        wrong += [
            f"{path.relative_to(SOURCE)}:{node.lineno}"
            for node in ast.walk(tree)
            if isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "failpoints"
            and id(node) not in guards
        ]
        wrong += [
            f"{path.relative_to(SOURCE)}: imports from failpoints"
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "belvedere.failpoints"
        ]
    assert wrong == []


def _is_hit(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Call)
        and ast.unparse(statement.value.func) == "failpoints.hit"
    )
