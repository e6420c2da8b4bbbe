"""Import direction: which part of Belvedere may know which, and by which of its modules.

Imports go down the list of LAYERS only, and inside a package that FOLDERS lists, down its own list.
Names on one line are siblings that do not see each other. Inside a name that has no list everything
may see everything, as long as no two modules need one another.

A package names in `SURFACE` of its `__init__` the modules that others may import; the rest is its
own affair and can move.

An import inside a function hides a dependency: it is refused unless its line ends in `# heavy`, the
mark of a package that is optional or slow to load. The direction of LAYERS holds for those too, and
for imports that only serve the type checker; only the latter may close a circle inside one name,
for data that is recursive by nature, such as a plan in an expression in a plan.
"""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "belvedere"
HEAVY = "# heavy"

Order = tuple[tuple[str, ...], ...]

LAYERS: Order = (
    ("__main__",),
    ("__init__",),
    ("benchmarks", "aio", "sqlalchemy"),
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
    ("config", "failpoints", "forks", "interrupts"),
    ("errors",),
)

FOLDERS: dict[str, Order] = {
    "advisor": (
        ("report",),
        ("advise", "review"),
        ("checked_choice",),
        ("forecast",),
        ("choice",),
        ("pricing",),
        ("candidates",),
        ("synergy",),
        ("workload",),
    ),
    "benchmarks": (
        (
            "bulk",
            "papers",
            "pipeline",
            "scaling",
            "server",
            "statements",
            "tpcc",
            "tpch_views",
            "tpcw",
            "ycsb",
        ),
        ("hbase",),
        ("overhead", "queries", "store", "views"),
        ("report", "tpch"),
    ),
    "codec": (
        ("arrow", "printer", "view_state"),
        ("keys", "rows"),
        ("bulk_record", "key_parts", "row_shape", "single_change_record"),
        ("accumulator", "encoding_errors", "numeric", "record", "row_slots"),
        ("compile", "keyspace", "scalars"),
    ),
    "execution": (
        ("choose_tier",),
        ("adaptive_plan", "result_size"),
        ("split_tiers",),
        ("duckdb", "spark"),
        ("python",),
        ("run",),
        ("bulk_insert",),
        ("foreign", "memory_limit", "row_writes"),
    ),
    "execution.python": (
        ("few_rows_read",),
        ("compile",),
        ("statements",),
        ("operators",),
        ("context",),
        ("expressions",),
    ),
    "interfaces": (
        ("commands",),
        ("aio", "server", "shell", "sqlalchemy"),
        ("dbapi", "node_verbs"),
        ("client", "stores"),
        ("owner_server", "remote"),
        ("verbs",),
        ("advice", "arrow", "cli", "values"),
        ("exceptions",),
    ),
    "interfaces.verbs": (
        ("registry",),
        ("maintain", "write"),
        ("copies", "streams"),
        ("advise", "read", "sessions", "statements", "store", "subscriptions"),
        ("peer",),
        ("leases", "plain_values", "wire"),
    ),
    "kv": (
        ("doubles", "rocksdb_gather"),
        ("hbase", "memory", "rocksdb"),
        (
            "cell_checks",
            "packed_rows",
            "rocksdb_errors",
            "rocksdb_log",
            "rocksdb_scan",
            "sorted_file",
        ),
        ("batch", "cell", "files", "rocksdb_settings"),
        ("cell_filter",),
    ),
    "kv.hbase": (
        ("store", "table_scan"),
        ("side_by_side",),
        ("tables",),
        ("exchange",),
        ("pool", "requests"),
        ("connections",),
        ("filter_text", "page_bytes", "thrift_types", "url"),
    ),
    "pipeline": (
        ("jobs",),
        ("backfill_files", "maintain"),
        ("aggregate", "datasource"),
        ("store",),
    ),
    "plan": (
        ("printer",),
        ("plan_items", "row_repeat", "transform"),
        ("nodes",),
        ("access", "dml", "expression_printer", "frames", "representation"),
        ("expressions",),
        ("fields", "functions"),
    ),
    "plan.functions": (
        ("registry",),
        ("nested",),
        ("aggregate", "text"),
        ("logic",),
        ("numeric",),
        ("datetime",),
        ("cast",),
        ("core",),
    ),
    "session": (
        ("prepared_text", "simple_query"),
        ("session",),
        ("dispatch",),
        ("copy", "cursors"),
        ("query_stream",),
        ("ddl", "explain"),
        ("materialized",),
        ("statement",),
        ("system_tables",),
        ("notify", "rights"),
        ("context",),
    ),
    "sql": (
        ("rules",),
        ("bind",),
        ("parse",),
        ("statements",),
        ("definitions",),
    ),
    "sql.bind": (
        ("statements",),
        ("queries",),
        ("expressions",),
        ("binder",),
        ("scope",),
        ("column_origins", "required_rights"),
    ),
    "sql.parse": (
        ("script",),
        ("normalize", "statements"),
        ("queries", "statement_forms"),
        ("lexical",),
        ("tree",),
    ),
    "sql.rules": (
        ("optimize",),
        ("seek_subqueries",),
        ("plan_cost",),
        ("joins",),
        ("access", "simplify_projects"),
        ("push_predicates", "subqueries"),
        ("estimates", "fold_constants", "prune_columns", "top_n"),
        ("context",),
        ("statistics",),
        ("column_summary", "equality", "factor_disjunctions"),
    ),
    "txn": (
        ("row_atomic",),
        ("batch_atomic",),
        ("engine",),
        ("scan_request",),
        ("transaction",),
        ("history",),
        ("cluster", "contracts", "exact_order", "gc_pause", "token"),
    ),
    "txn.row_atomic": (
        ("hbase_setup",),
        ("engine",),
        ("change_log", "node_lists"),
        ("commit_protocol",),
        ("bulk_commit",),
        ("catalog_barrier", "group_commit", "required_locks"),
        ("commit", "housekeeping", "reader"),
        ("load_holds",),
        ("read_rows",),
        ("locks", "log"),
        ("node",),
        ("cells", "isolation"),
    ),
    "views": (
        ("service",),
        ("backfill",),
        ("deferred", "rewrite"),
        ("read",),
        ("registry",),
        ("cost",),
        ("explain", "maintain"),
        ("codegen",),
        ("operators",),
        ("compile", "indexes", "state"),
        ("changefeed", "delta"),
    ),
}
"""Package to the order of the folders and modules directly in it, the highest first."""


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
        if not any(layer_of(name) in names for names in LAYERS)
    ]
    for path in modules.values():
        problems += _find_hidden(path.relative_to(root), path.read_text())
    imports = find_imports(modules)
    problems += check_direction(imports, root)
    problems += check_surfaces(imports, modules, root)
    return problems + find_cycles(imports)


def find_modules(package: Path) -> dict[str, Path]:
    """Full module name to file. A package's own name stands for its `__init__`."""
    modules = {}
    for path in sorted(package.rglob("*.py")):
        parts = [PACKAGE, *path.relative_to(package).with_suffix("").parts]
        if parts[-1] == "__init__":
            parts.pop()
        modules[".".join(parts)] = path
    return modules


def find_imports(modules: dict[str, Path]) -> list[Import]:
    """Every import of one module of the package by another."""
    return [
        found
        for name, path in modules.items()
        for found in _imports_of(name, path, ast.parse(path.read_text()), modules)
    ]


def layer_of(module: str) -> str:
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


# -- direction --------------------------------------------------------------------------------


def check_direction(imports: list[Import], root: Path) -> list[str]:
    """Imports that go up, in LAYERS or in the order of a package."""
    problems = []
    for found in imports:
        where = f"{found.path.relative_to(root)}:{found.line}"
        package, source, target = _first_difference(found.source, found.target)
        order = LAYERS if package == PACKAGE else FOLDERS.get(package.removeprefix(f"{PACKAGE}."))
        if order is None or (package != PACKAGE and found.typing_only):
            continue
        levels = {name: level for level, names in enumerate(order) for name in names}
        if package != PACKAGE:
            if "__init__" in (source, target):
                continue  # the front of a package may show what is in it
            missing = [name for name in (source, target) if name not in levels]
            problems += [
                f"{where}: {name} has no place in the order of {package}" for name in missing
            ]
        # An unknown layer is reported by itself.
        if source in levels and target in levels and levels[source] >= levels[target]:
            problems.append(f"{where}: {source} imports {target}, which is not below it")
    return problems


def _first_difference(source: str, target: str) -> tuple[str, str, str]:
    """The package both modules are in, and the name in it through which each is reached."""
    left, right = [*source.split("."), "__init__"], [*target.split("."), "__init__"]
    depth = next(i for i, pair in enumerate(zip(left, right)) if pair[0] != pair[1])
    return ".".join(left[:depth]), left[depth], right[depth]


# -- surfaces ---------------------------------------------------------------------------------


def check_surfaces(imports: list[Import], modules: dict[str, Path], root: Path) -> list[str]:
    """Imports from outside a package of a module that its surface does not name, and names that
    nobody outside imports."""
    surfaces = {
        name: surface
        for name, path in modules.items()
        if path.name == "__init__.py" and (surface := read_surface(path)) is not None
    }
    problems = []
    for package, surface in surfaces.items():
        inside = f"{package}."
        used = set()
        for found in imports:
            if not found.target.startswith(inside) or f"{found.source}.".startswith(inside):
                continue
            name = found.target.removeprefix(inside)
            used.add(name)
            if name not in surface:
                problems.append(
                    f"{found.path.relative_to(root)}:{found.line}: {found.target} is not in the"
                    f" SURFACE of {package}"
                )
        problems += [
            f"{modules[package].relative_to(root)}: SURFACE names {name}, which nobody imports"
            for name in sorted(surface - used)
        ]
    return problems


def read_surface(path: Path) -> frozenset[str] | None:
    """The modules a package's `__init__` names in SURFACE; None: it has none."""
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "SURFACE":
            return frozenset(ast.literal_eval(node.value))
    return None


# -- imports of one module --------------------------------------------------------------------


def _imports_of(
    module: str, path: Path, tree: ast.Module, modules: dict[str, Path]
) -> Iterator[Import]:
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    typing_only = _find_typing_only(tree)
    for node in ast.walk(tree):
        for target in _find_targets(node, package, modules):
            if target.split(".")[0] == PACKAGE and target != module:
                assert isinstance(node, ast.Import | ast.ImportFrom)
                yield Import(module, target, path, node.lineno, node in typing_only)


def _find_typing_only(tree: ast.Module) -> set[ast.AST]:
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")
        for statement in node.body
        for inner in ast.walk(statement)
    }


def _find_targets(node: ast.AST, package: str, modules: dict[str, Path]) -> Iterator[str]:
    match node:
        case ast.Import():
            yield from (alias.name for alias in node.names)
        case ast.ImportFrom():
            origin = _resolve_origin(node, package)
            for alias in node.names:
                deeper = f"{origin}.{alias.name}"
                yield deeper if deeper in modules else origin


def _resolve_origin(node: ast.ImportFrom, package: str) -> str:
    """The module a `from` names, with leading dots resolved."""
    if not node.level:
        return node.module or ""
    parts = package.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts)


def _find_hidden(path: Path, text: str) -> Iterator[str]:
    lines = text.splitlines()
    seen = set()
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Import | ast.ImportFrom) or node.lineno in seen:
                continue
            seen.add(node.lineno)
            span = lines[node.lineno - 1 : node.end_lineno]
            if not any(line.rstrip().endswith(HEAVY) for line in span):
                yield f"{path}:{node.lineno}: import inside a function, not marked `{HEAVY}`"


def find_cycles(imports: list[Import]) -> list[str]:
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
