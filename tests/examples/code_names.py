"""Names of code in the Markdown pages and the product of a tree: which of them do not exist.

In code font, outside of examples, a page or docstring names code in three ways. Paths and modules
are written from `src/belvedere` on; a path may also start at the repository.

    views/delta/delta_plan.py, tests/views/       a file or a folder, `*` as in a shell
    views.read.catch_up.overlay_pending_log       a module, or what is defined in it
    ViewMaintainer.writes(changes, ..)            a class of the product, or a member of it

A dotted name whose first part is no package or module of `src/belvedere` is something else
(SQL, a variable), and so is one that starts with `belvedere.`, unless it goes on with a package:
tables of the schema belvedere are written like that. Rows of a table that are *planned* are left
out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from tests.examples.links import find_pages

_FENCED = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
_CODE_SPAN = re.compile(r"`([^`\n]+)`")
_PLANNED = re.compile(r"^\|.*\| \*planned:\*.*$", re.MULTILINE)
_PATH = re.compile(r"[a-z][\w.*-]*(/[\w.*-]+)+/?|[a-z]\w*(/|\.py)")
_DOTTED = re.compile(r"(?P<name>\w+(\.\w+)+)(\(.*\))?")
_CLASS = re.compile(r"(?P<name>[A-Z][a-z]+[A-Z][A-Za-z]*(\.\w+)?|[A-Z][a-z]+\.\w+)(\(.*\))?")
_HISTORY = "CHANGELOG.md"
_FOREIGN = {"MapInArrow", "Rdict", "Trigger"}  # classes of other packages

Names = dict[str, frozenset[str]]


def find_dead_code_names(root: Path) -> list[str]:
    """Every name in a page or module that no code has. The change log may name the past."""
    return [
        f"{page.relative_to(root)} names {name}"
        for page in [*find_pages(root), *sorted((root / "src").rglob("*.py"))]
        if page.name != _HISTORY
        for name in code_spans(page)
        if not is_there(root, name)
    ]


def code_spans(page: Path) -> Iterator[str]:
    """What a page or module has in code font, examples left out."""
    text = _PLANNED.sub("", _FENCED.sub("", page.read_text()))
    yield from dict.fromkeys(_CODE_SPAN.findall(text))


def is_there(root: Path, name: str) -> bool:
    """Whether the code that a span names exists; True for a span that names no code."""
    if _PATH.fullmatch(name):
        return _path_is_there(root, name)
    if found := _CLASS.fullmatch(name):
        return _class_is_there(root, found["name"])
    if found := _DOTTED.fullmatch(name):
        return _module_is_there(root, found["name"].split("."))
    return True


def _path_is_there(root: Path, path: str) -> bool:
    package = root / "src" / "belvedere"
    top, folder = path.split("/")[0], path.endswith("/")
    if not any((base / name).exists() for base in (root, package) for name in (top, f"{top}.py")):
        return not folder and not path.endswith(".py")  # `km/h`: no path of this repository
    return any(
        found.is_dir() or not folder
        for base in (root, package)
        for pattern in (path.rstrip("/"), f"{path.rstrip('/')}.py")
        for found in base.glob(pattern)
    )


def _module_is_there(root: Path, parts: list[str]) -> bool:
    package = root / "src" / "belvedere"
    if parts[0] == "belvedere":
        parts = parts[1:]
        if len(parts) < 2:
            return True
    if not (package / parts[0]).is_dir() and not (package / f"{parts[0]}.py").exists():
        return True
    for length in range(len(parts), 0, -1):
        base = package.joinpath(*parts[:length])
        for file in (base.with_name(f"{base.name}.py"), base / "__init__.py"):
            if file.exists():
                return _is_defined(defined_names(file), parts[length:])
        if base.is_dir():
            return length == len(parts)
    return False


def _is_defined(names: Names, rest: list[str]) -> bool:
    match rest:
        case []:
            return True
        case [name]:
            return name in names
        case [name, member]:
            return member in names.get(name, ())
        case _:
            return False


def _class_is_there(root: Path, name: str) -> bool:
    class_, _, member = name.partition(".")
    if class_ in _FOREIGN:
        return True
    found = [names[class_] for names in _all_names(root) if class_ in names]
    return any(not member or member in members for members in found)


@lru_cache(maxsize=4)
def _all_names(root: Path) -> list[Names]:
    return [defined_names(path) for path in sorted((root / "src").rglob("*.py"))]


@lru_cache(maxsize=2000)
def defined_names(path: Path) -> Names:
    """What a module defines or imports at its top, with the members of its classes."""
    found: Names = {}
    for node in ast.parse(path.read_text()).body:
        for name in _bound_names(node):
            found[name] = (
                frozenset(_members(node)) if isinstance(node, ast.ClassDef) else frozenset()
            )
    return found


def _bound_names(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name for alias in names)
        case ast.Assign(targets=targets):
            yield from (target.id for target in targets if isinstance(target, ast.Name))
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name


def _members(class_: ast.ClassDef) -> Iterator[str]:
    """Methods, fields, and what methods assign to `self`."""
    for node in class_.body:
        yield from _bound_names(node)
    for node in ast.walk(class_):
        match node:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name
