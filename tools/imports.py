"""Import direction: which part of Belvedere may know which.

Imports go down the list of LAYERS only. Names on one line are siblings that do not see each other;
inside one name everything may see everything, as long as no two modules need one another. An
import inside a function hides a dependency: it is refused unless its line ends in `# heavy`, the
mark of a package that is optional or slow to load. The direction holds for those too, and for
imports that only serve the type checker; only the latter may close a circle inside one name, for
data that is recursive by nature, such as a plan in an expression in a plan.
"""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "belvedere"
HEAVY = "# heavy"

LAYERS: tuple[tuple[str, ...], ...] = (
    ("__main__",),
    ("__init__",),
    ("benchmarks",),
    ("interfaces",),
    ("database",),
    ("session",),
    ("pipeline", "advisor"),
    ("views",),
    ("execution",),
    ("sql", "txn"),
    ("plan",),
    ("catalog",),
    ("codec", "kv", "remote", "values"),
    ("types",),
    ("config", "failpoints"),
    ("errors",),
)
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}


@dataclass(frozen=True, slots=True)
class Import:
    """Module `source` imports module `target`; both are full names."""

    source: str
    target: str
    path: Path
    line: int
    typing_only: bool


def check(root: Path) -> list[str]:
    """Every violation in the tree under `root`, as `path:line: what is wrong`."""
    modules = find_modules(root / "src" / PACKAGE)
    problems = [
        f"{path.relative_to(root)}: {layer_of(name)} has no place in LAYERS of tools/imports.py"
        for name, path in modules.items()
        if layer_of(name) not in LEVEL
    ]
    imports = []
    for name, path in modules.items():
        tree = ast.parse(path.read_text())
        imports += list(_imports(name, path, tree, modules))
        problems += _hidden(path.relative_to(root), path.read_text(), tree)
    problems += [
        f"{found.path.relative_to(root)}:{found.line}: {layer_of(found.source)} imports"
        f" {layer_of(found.target)}, which is not below it"
        for found in imports
        if not _allowed(layer_of(found.source), layer_of(found.target))
    ]
    return problems + _cycles(imports)


def find_modules(package: Path) -> dict[str, Path]:
    """Full module name to file. A package's own name stands for its `__init__`."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = [PACKAGE, *path.relative_to(package).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        modules[".".join(parts)] = path
    return modules


def layer_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def _allowed(source: str, target: str) -> bool:
    if source == target:
        return True
    # An unknown layer is reported by itself.
    return source not in LEVEL or target not in LEVEL or LEVEL[source] < LEVEL[target]


def _imports(
    module: str, path: Path, tree: ast.Module, modules: dict[str, Path]
) -> Iterator[Import]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    typing_only = _typing_only(tree)
    for node in ast.walk(tree):
        for target in _targets(node, package, modules):
            if target.split(".")[0] == PACKAGE and target != module:
                assert isinstance(node, ast.Import | ast.ImportFrom)
                yield Import(module, target, path, node.lineno, node in typing_only)


def _typing_only(tree: ast.Module) -> set[ast.AST]:
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }


def _targets(node: ast.AST, package: str, modules: dict[str, Path]) -> Iterator[str]:
    match node:
        case ast.Import():
            yield from (alias.name for alias in node.names)
        case ast.ImportFrom():
            origin = _origin(node, package)
            for alias in node.names:
                deeper = f"{origin}.{alias.name}"
                yield deeper if deeper in modules else origin


def _origin(node: ast.ImportFrom, package: str) -> str:
    """The module a `from` names, with leading dots resolved."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts)


def _hidden(path: Path, text: str, tree: ast.Module) -> Iterator[str]:
    lines = text.splitlines()
    seen = set()
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Import | ast.ImportFrom) or node.lineno in seen:
                continue
            seen.add(node.lineno)
            span = lines[node.lineno - 1 : node.end_lineno]
            if not any(line.rstrip().endswith(HEAVY) for line in span):
                yield f"{path}:{node.lineno}: import inside a function, not marked `{HEAVY}`"


def _cycles(imports: list[Import]) -> list[str]:
    graph: dict[str, set[str]] = {}
    for found in imports:
        if found.typing_only:
            continue
        graph.setdefault(found.source, set()).add(found.target)
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        # The sorter lists a cycle against the direction of the imports.
        return ["import cycle: " + " -> ".join(reversed(error.args[1]))]
    return []
