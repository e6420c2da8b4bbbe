"""Tidiness: what every file of the repository keeps to.

Each check takes the root of a tree and returns its complaints, so that a test can plant a violation
in a tree of its own. The limits:

- a file has at most 500 lines; up to 800 when tests/tidy/ratchet.toml says why;
- a function has at most 60 lines; longer ones are listed in the ratchet, and only shrink;
- every module of the product and its tools says in a docstring what it is;
- no error is swallowed whole;
- no text speaks of machines, trackers or unfinished work;
- every subpackage has its tests, and no name contains a word that the glossary rules out;
- every package says what it is and lists what is in it.

`python -m tools.tidy` prints the complaints, `--report` the counts: files a folder, names, cycles.
Names are counted in `tools.names`, imports in `tools.imports`.
"""

from __future__ import annotations

import ast
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tools import imports, names

FILE_LINES = 500
FILE_LINES_MAX = 800
FUNCTION_LINES_MAX = 60
RATCHET_SLACK_LINES = 20
"""How far a listed offender may be below its number before the number has to follow."""

RATCHET = Path("tests/tidy/ratchet.toml")
CODE = ("src", "tools", "tests", "benchmarks", "examples")
DOCUMENTED = ("src", "tools", "benchmarks", "examples")
TEXT_SUFFIXES = frozenset(
    ".py .md .toml .txt .sh .lock .slt .sql .json .html .js .css .yml .yaml .test .spec".split()
)
TEXT_NAMES = frozenset(["Makefile", "run", ".gitignore"])
SKIPPED_DIRECTORIES = frozenset(["node_modules", "__pycache__", "dist", "build"])

# Written in pieces, so that this file passes its own check.
UNWELCOME = {
    "a path of one machine": re.compile(
        r"(?<![\w.}])/(?:wo" r"rk|ro" r"ot|opt/wh" r"eels|home/\w+)/"
    ),
    "a tracker's number": re.compile(r"\bissue" r"s? #?\d", re.IGNORECASE),
    "unfinished work": re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b"),
    "a package index": re.compile(r"pypi\.or" r"g|pythonhos" r"ted\.org", re.IGNORECASE),
    "who wrote it": re.compile(r"co-author" r"ed-by|\bclau" r"de\b|anthro" r"pic", re.IGNORECASE),
}
VAGUE = re.compile(r"(?:Manager|Helpers?|Utils?|Base|Impl)$")
VAGUE_MODULES = frozenset(
    ["utils", "util", "helpers", "helper", "common", "misc", "base", "manager"]
)


@dataclass(frozen=True, slots=True)
class Allowed:
    """One listed offender. `name` is a function's, empty for a whole file."""

    path: str
    name: str
    lines: int


def python_files(root: Path, directories: tuple[str, ...]) -> Iterator[Path]:
    for directory in directories:
        for path in sorted((root / directory).rglob("*.py")):
            if not SKIPPED_DIRECTORIES & set(path.relative_to(root).parts):
                yield path


def read_ratchet(root: Path) -> dict[tuple[str, str], Allowed]:
    path = root / RATCHET
    if not path.exists():
        return {}
    data = tomllib.loads(path.read_text())
    allowed = {}
    for entry in [*data.get("file", []), *data.get("function", [])]:
        if not entry["reason"].strip():
            raise ValueError(f"{RATCHET}: {entry['path']} gives no reason")
        found = Allowed(entry["path"], entry.get("name", ""), entry["lines"])
        allowed[found.path, found.name] = found
    return allowed


def check_lengths(root: Path) -> list[str]:
    """Files and functions over their limits, and ratchet entries that are no longer needed."""
    ratchet = read_ratchet(root)
    problems: list[str] = []
    used = set()
    for path in python_files(root, CODE):
        where, text = str(path.relative_to(root)), path.read_text()
        sizes = [("", len(text.splitlines()), FILE_LINES)]
        sizes += [(name, lines, FUNCTION_LINES_MAX) for name, lines in _functions(ast.parse(text))]
        for name, lines, limit in sizes:
            if lines <= limit:
                continue
            used.add((where, name))
            problems += _judge_length(where, name, lines, limit, ratchet.get((where, name)))
    problems += [
        f"{RATCHET}: remove {where} {name}: it is within the limit now".replace(" :", ":")
        for where, name in sorted(ratchet.keys() - used)
    ]
    return problems


def _judge_length(
    where: str, name: str, lines: int, limit: int, allowed: Allowed | None
) -> Iterator[str]:
    what = f"{where}: {name}" if name else where
    if not name and lines > FILE_LINES_MAX:
        yield f"{what}: {lines} lines, {FILE_LINES_MAX} is the most any file may have"
    elif allowed is None:
        yield f"{what}: {lines} lines, over {limit}; split it, or say in {RATCHET} why not"
    elif lines > allowed.lines:
        yield f"{what}: grew to {lines} lines, {allowed.lines} are allowed"
    elif lines < allowed.lines - RATCHET_SLACK_LINES:
        yield f"{what}: shrank to {lines} lines; lower its number in {RATCHET}"


def _functions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, int]]:
        for child in ast.iter_child_nodes(node):
            name = prefix
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{prefix}.{child.name}" if prefix else child.name
                if not isinstance(child, ast.ClassDef):
                    yield name, (child.end_lineno or child.lineno) - child.lineno + 1
            yield from walk(child, name)

    return walk(tree, "")


def check_docstrings(root: Path) -> list[str]:
    return [
        f"{path.relative_to(root)}: the module has no docstring"
        for path in python_files(root, DOCUMENTED)
        if not ast.get_docstring(ast.parse(path.read_text()))
    ]


def check_swallowed(root: Path) -> list[str]:
    """Handlers of everything that do nothing, and `suppress` of everything."""
    problems = []
    for path in python_files(root, CODE):
        for node in ast.walk(ast.parse(path.read_text())):
            if _swallows(node):
                line = getattr(node, "lineno", 0)
                problems.append(f"{path.relative_to(root)}:{line}: swallows every error")
    return problems


def _swallows(node: ast.AST) -> bool:
    match node:
        case ast.ExceptHandler(type=caught, body=body):
            return _is_everything(caught) and all(_does_nothing(step) for step in body)
        case ast.Call(
            func=ast.Name(id="suppress") | ast.Attribute(attr="suppress"), args=arguments
        ):
            return any(_is_everything(argument) for argument in arguments)
    return False


def _is_everything(caught: ast.expr | None) -> bool:
    match caught:
        case None | ast.Name(id="Exception" | "BaseException"):
            return True
        case ast.Tuple(elts=elements):
            return any(_is_everything(element) for element in elements)
    return False


def _does_nothing(step: ast.stmt) -> bool:
    match step:
        case ast.Pass() | ast.Continue() | ast.Expr(value=ast.Constant()):
            return True
    return False


def check_words(root: Path) -> list[str]:
    """Lines that name what does not belong into the product."""
    return [
        f"{path.relative_to(root)}:{number}: names {what}"
        for path in text_files(root)
        for number, line in enumerate(path.read_text(errors="replace").splitlines(), 1)
        for what, pattern in UNWELCOME.items()
        if pattern.search(line)
    ]


def text_files(root: Path) -> Iterator[Path]:
    for directory, children, files in os.walk(root):
        children[:] = sorted(
            child
            for child in children
            if child not in SKIPPED_DIRECTORIES and (child == ".ci" or not child.startswith("."))
        )
        for name in sorted(files):
            if name in TEXT_NAMES or Path(name).suffix in TEXT_SUFFIXES:
                yield Path(directory) / name


def check_mirror(root: Path) -> list[str]:
    """Every subpackage has its own directory of tests."""
    return [
        f"src/belvedere/{package.name}: tests/{package.name} has no test_*.py"
        for package in sorted((root / "src" / "belvedere").iterdir())
        if package.is_dir()
        and any(package.rglob("*.py"))
        and not any((root / "tests" / package.name).rglob("test_*.py"))
    ]


def ruled_out(glossary: str) -> dict[str, str]:
    """From the glossary's table: each word in code font in the last column, and what to say."""
    words = {}
    for line in glossary.splitlines():
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        if line.startswith("|") and len(cells) == 3:
            for word in re.findall(r"`([a-z_]+)`", cells[2]):
                words[word] = cells[0]
    return words


def check_names(root: Path) -> list[str]:
    """Names in src: no vague ones, none that the glossary rules out."""
    words = ruled_out((root / "docs" / "glossary.md").read_text())
    problems = []
    for path in python_files(root, ("src",)):
        where = path.relative_to(root)
        if path.stem in VAGUE_MODULES:
            problems.append(f"{where}: {path.stem} says nothing")
        for name, line in _defined_names(ast.parse(path.read_text())):
            if VAGUE.search(name) and name[0].isupper():
                problems.append(f"{where}:{line}: {name} says nothing")
            plain = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
            problems += [
                f"{where}:{line}: {name} says {word!r}; the glossary says {better!r}"
                for word, better in words.items()
                if f"_{word}_" in f"_{plain}_"
            ]
    return problems


def _defined_names(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.name, node.lineno
            case ast.arg():
                yield node.arg, node.lineno
            case ast.Name(ctx=ast.Store()):
                yield node.id, node.lineno


def check_front_pages(root: Path) -> list[str]:
    """Packages whose docstring does not name every module and folder directly in them."""
    problems = []
    for path in sorted((root / "src" / "belvedere").rglob("__init__.py")):
        page = ast.get_docstring(ast.parse(path.read_text())) or ""
        children = {child.stem for child in path.parent.glob("*.py")} | {
            child.parent.name for child in path.parent.glob("*/__init__.py")
        }
        children -= {"__init__", "__main__"}
        if path.parent == root / "src" / "belvedere":
            continue  # its page is ARCHITECTURE.md
        missing = [name for name in sorted(children) if not re.search(rf"\b{name}\b", page)]
        if missing:
            problems.append(f"{path.relative_to(root)}: does not name {', '.join(missing)}")
    return problems


CHECKS = (
    check_lengths,
    check_docstrings,
    check_swallowed,
    check_words,
    check_mirror,
    check_names,
    check_front_pages,
    names.check_folders,
    names.check_ratchet,
)


def main(arguments: list[str], root: Path = Path()) -> int:
    if arguments == ["--report"]:
        found = imports.find_imports(imports.find_modules(root / "src" / imports.PACKAGE))
        print(names.print_report(root))
        print(f"import cycles      {len(imports.find_cycles(found))}")
        return 0
    problems = [problem for check in CHECKS for problem in check(root)]
    print(*problems, sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
