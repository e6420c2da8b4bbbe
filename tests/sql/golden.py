"""Golden scripts: blocks of a statement, a line of three dashes, and what it must print.

`pytest --update` writes the expected parts anew; read the difference before committing it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from belvedere.catalog.model import AnyObject
from belvedere.errors import Error
from belvedere.plan import expressions as e
from belvedere.plan.expression_printer import print_expression
from belvedere.plan.printer import print_plan
from belvedere.sql import statements as s
from belvedere.types import SqlType
from tests.sql.compiled import bind_text, plan_text

DIRECTORY = Path(__file__).parent / "golden"


def blocks(path: Path) -> list[tuple[str, str]]:
    """(statement, expected) of a script; a line that begins with # is a comment."""
    found = []
    for block in path.read_text().split("\n\n"):
        lines = [line for line in block.splitlines() if not line.startswith("#")]
        text = "\n".join(lines).strip("\n")
        if text:
            statement, _, expected = text.partition("\n---\n")
            found.append((statement.removesuffix("\n---"), expected))
    return found


def check(path: Path, run: Callable[[str], str], update: bool) -> None:
    """Every statement of the script prints what the script says."""
    if update:
        _rewrite(path, run)
    wrong = []
    for statement, expected in blocks(path):
        actual = run(statement)
        if actual != expected:
            wrong.append(f"{statement}\n--- expected\n{expected}\n--- but was\n{actual}\n")
    assert not wrong, f"{len(wrong)} differences in {path.name}\n\n" + "\n".join(wrong)


def _rewrite(path: Path, run: Callable[[str], str]) -> None:
    made = []
    for block in path.read_text().split("\n\n"):
        lines = block.strip("\n").splitlines()
        comments = [line for line in lines if line.startswith("#")]
        text = "\n".join(line for line in lines if not line.startswith("#"))
        if not text:
            made.append("\n".join(comments))
            continue
        statement = text.partition("\n---\n")[0].removesuffix("\n---")
        made.append("\n".join([*comments, statement, "---", run(statement)]))
    path.write_text("\n\n".join(one for one in made if one) + "\n")


# -- what statements print -------------------------------------------------------------------------


def bound(text: str) -> str:
    return _shown(text, bind_text)


def optimized(text: str) -> str:
    return _shown(text, plan_text)


def _shown(text: str, compile_text: Callable[[str], list[s.Statement]]) -> str:
    try:
        return "\n".join(map(show, compile_text(text)))
    except Error as error:
        return failure(error)


def failure(error: Error) -> str:
    place = "" if error.position is None else f" at {error.position}"
    return f"{type(error).__name__} {error.sqlstate}{place}: " + str(error).replace("\n", "; ")


def show(statement: Any) -> str:
    """A statement as text: plans as trees, everything else by its fields that are not defaults."""
    if isinstance(statement, s.DataPlan):
        lines = [print_plan(statement.plan, exact=True)]
        if statement.fields:
            lines.append("=> " + ", ".join(f"{f.name} {f.type}" for f in statement.fields))
        if statement.parameters:
            lines.append("parameters " + ", ".join(map(str, statement.parameters)))
        return "\n".join(lines)
    plan = getattr(statement, "plan", None)
    text = _value(statement)
    if isinstance(statement, s.Explain):
        return f"{text}\n{show(statement.statement)}"
    return text if plan is None else f"{text}\n{print_plan(plan, exact=True)}"


def _value(value: Any) -> str:
    match value:
        case SqlType():
            return str(value)
        case e.Literal():
            return print_expression(value)
        case msgspec.Struct() if not isinstance(value, AnyObject):
            return _struct(value)
        case tuple() if hasattr(value, "_fields"):
            return _named(value)
        case tuple():
            return "(" + ", ".join(map(_value, value)) + ")"
        case str():
            return str(value)
        case _:
            return repr(value)


def _struct(value: msgspec.Struct) -> str:
    parts = []
    for name in value.__struct_fields__:
        held = getattr(value, name)
        if name in ("plan", "statement") or any(held is one for one in (None, False, ())):
            continue
        if isinstance(held, s.DataPlan) and held.plan is getattr(value, "plan", None):
            continue  # printed below
        parts.append(f"{name}={_value(held)}")
    return f"{type(value).__name__}({', '.join(parts)})"


def _named(value: Any) -> str:
    if hasattr(value, "schema") and hasattr(value, "name"):
        return str(value)
    return "[" + " ".join(_value(one) for one in value if one is not None) + "]"
