"""Mutations: named bugs that a test puts into the imported code, to see that a harness finds them.

    with mutated("ack_before_sync"):
        ...                             # the engine acknowledges too early
    mutate("ack_before_sync")           # the same until this process ends: for a child

A mutation is a text of a function that is replaced by another one. The changed source is compiled,
and the function gets its code: whoever holds the function, under whatever name, runs it from then
on. A text that is not there exactly once is refused, so that a mutation that the code has moved
away from fails loudly.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import CodeType, FunctionType
from typing import Any, cast

Replacement = tuple[str, str]
"""A text that a function has once, and what is to be there instead."""

Known = list[tuple[FunctionType, CodeType]]
"""Functions with the code that they had."""

_mutated: set[FunctionType] = set()


class DoesNotApply(Exception):
    """The code is not, or no longer, what a mutation was written for."""


@dataclass(frozen=True, slots=True)
class Patch:
    """Replaces texts of a function, each by another one."""

    function: Callable[..., Any]
    replacements: tuple[Replacement, ...]

    def compile_code(self) -> CodeType:
        """The code of the function with the texts replaced."""
        function = cast("FunctionType", self.function)
        if function in _mutated:
            raise DoesNotApply(f"{function.__qualname__} has another mutation already")
        lines, first = inspect.getsourcelines(function)
        text = "".join(lines)
        for old, new in self.replacements:
            if text.count(old) != 1:
                name = f"{function.__module__}.{function.__qualname__}"
                raise DoesNotApply(f"{name} has {text.count(old)} times\n{old}")
            text = text.replace(old, new)
        module = _module_lines(function.__module__)
        whole = "".join([*module[: first - 1], text, *module[first - 1 + len(lines) :]])
        filename = function.__code__.co_filename
        found = _find_code(compile(whole, filename, "exec", dont_inherit=True), function)
        if found.co_freevars != function.__code__.co_freevars:
            raise DoesNotApply(f"{function.__qualname__} closes over {found.co_freevars}")
        return found


@dataclass(frozen=True, slots=True)
class Mutation:
    """A bug: what goes wrong with it, and the patches that make it."""

    meaning: str
    patches: tuple[Patch, ...]

    def apply(self) -> Known:
        """Put the bug in place; what `restore` takes to remove it."""
        made = [(cast("FunctionType", one.function), one.compile_code()) for one in self.patches]
        known = [(function, function.__code__) for function, _ in made]
        for function, code in made:
            function.__code__ = code
            _mutated.add(function)
        return known


def restore(known: Known) -> None:
    for function, code in known:
        function.__code__ = code
        _mutated.discard(function)


def patch(function: Callable[..., Any], *replacements: Replacement) -> Patch:
    return Patch(function, replacements)


def mutation(meaning: str, *patches: Patch) -> Mutation:
    return Mutation(meaning, patches)


def before(text: str, *lines: str) -> Replacement:
    """The text with lines in front of it, indented as it is."""
    indent = text[: len(text) - len(text.lstrip())]
    return text, "".join([f"{indent}{line}\n" for line in lines]) + text


@cache
def _module_lines(module: str) -> list[str]:
    return inspect.getsource(sys.modules[module]).splitlines(keepends=True)


def _find_code(module: CodeType, function: FunctionType) -> CodeType:
    """The function's code in that of its module."""
    for code in _codes(module):
        if code.co_qualname == function.__qualname__:
            return code
    raise DoesNotApply(f"{function.__module__} has no {function.__qualname__}")


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
