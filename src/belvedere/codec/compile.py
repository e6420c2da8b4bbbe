"""Compilation of generated source text into a function.

Encoders and decoders are straight-line Python made for one list of types, because a call or a
branch per value would cost more than the work itself. The text of a compiled function is its
docstring, so `help(codec.encode)` shows what runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any


def compile_function(
    name: str, parameters: str, body: Iterable[str], constants: dict[str, Any]
) -> Callable[..., Any]:
    """A function of the given body lines; `constants` become its globals."""
    source = "\n".join([f"def {name}({parameters}):", *("    " + line for line in body)])
    space = dict(constants)
    exec(compile(source, f"<belvedere {name}>", "exec"), space)
    function: Callable[..., Any] = space[name]
    function.__doc__ = source
    return function


def indent(lines: Iterable[str], levels: int = 1) -> list[str]:
    return ["    " * levels + line for line in lines]
