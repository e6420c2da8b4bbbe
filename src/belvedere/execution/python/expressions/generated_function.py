"""Builder of one generated Python function: source text, constants and temporaries.

Every compiled expression becomes text inside a function of the shape

    def bind(run):
        p = run.parameters          what the text needs of the run, fetched once
        def evaluate(row):
            return ...
        return evaluate

or, for entire operators, a generator that takes the run. Names of constants and temporaries are
unique within one function, so texts can be combined freely.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from belvedere.codec.compile import compile_function, indent

_BOUND = "b_"


class GeneratedFunction:
    """A function under construction."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}
        self._names: dict[int, str] = {}
        self._temporaries = 0
        self._prelude: dict[str, str] = {}

    def add_constant(self, value: Any, hint: str = "c") -> str:
        """Adds an object as a constant; returns the variable by which the text refers to it."""
        known = self._names.get(id(value))
        if known is not None:
            return known
        name = f"{hint}_{len(self.constants)}"
        self.constants[name] = value  # the reference keeps its id unique
        self._names[id(value)] = name
        return name

    def new_temporary(self) -> str:
        self._temporaries += 1
        return f"t{self._temporaries}"

    def use_parameters(self) -> str:
        return self._use_run_value("p", "run.parameters")

    def use_environment(self) -> str:
        return self._use_run_value("environment", "run.environment")

    def use_services(self) -> str:
        return self._use_run_value("services", "run.services")

    def use_outer_row(self, depth: int) -> str:
        """The variable of the row `depth` queries further out."""
        return self._use_run_value(f"o{depth}", "run" + ".parent" * (depth - 1) + ".outer")

    def bind_to_run(self, bind: Callable[..., Any]) -> str:
        """The variable of a row function that is bound to the run once."""
        factory = self.add_constant(bind, "bind")
        return self._use_run_value(_BOUND + factory, f"{factory}(run)")

    @property
    def calls_functions_of_run(self) -> bool:
        """Whether functions that read the run themselves, `bind_to_run`, are among its values."""
        return any(name.startswith(_BOUND) for name in self._prelude)

    def _use_run_value(self, name: str, source: str) -> str:
        self._prelude[name] = f"{name} = {source}"
        return name

    def build_function(
        self, name: str, body: Iterable[str], arguments: str = "run"
    ) -> Callable[..., Any]:
        """`def name(run)` of the prelude and these lines."""
        lines = [*self._prelude.values(), *body]
        return compile_function(name, arguments, lines, self.constants)

    def build_row_function(self, result: str, arguments: str = "row") -> Callable[..., Any]:
        """A function from run to a function of rows that returns `result`."""
        body = [f"def evaluate({arguments}):", *indent([f"return {result}"]), "return evaluate"]
        return self.build_function("bind", body)


def tuple_source(parts: Iterable[str]) -> str:
    return "(" + "".join(f"{part}, " for part in parts) + ")"
