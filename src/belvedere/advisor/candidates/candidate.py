"""A candidate: a view, or an index of a table, that the advisor considers."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace

from belvedere.advisor.workload.sql_names import write_name


class CandidateKind(enum.StrEnum):
    PATH = "path of a rooted tree"
    JOIN = "join"
    FILTERED = "filtered join"
    AGGREGATE = "aggregate"
    SHARED = "shared join"
    WHOLE = "whole query"
    TOP = "top-k"
    INDEX = "index"


@dataclass(frozen=True, slots=True)
class Candidate:
    """`definition` is the query of a view; an index has `table` and `columns` instead. `options`
    go into WITH (..). `key` are the first columns of the view, by which it is ordered. `queries`
    are the statements it was made for; others may use it too."""

    name: str
    kind: CandidateKind
    relations: frozenset[int]
    definition: str = ""
    table: str = ""
    columns: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    options: tuple[tuple[str, str], ...] = ()
    queries: frozenset[str] = field(default=frozenset())

    @property
    def is_index(self) -> bool:
        return self.kind is CandidateKind.INDEX

    @property
    def identity(self) -> tuple[object, ...]:
        """Two candidates with the same one are the same but for their names."""
        return (self.definition, self.table, self.columns, self.options)

    def with_options(self, options: tuple[tuple[str, str], ...]) -> Candidate:
        return replace(self, options=options)

    def write_ddl(self) -> str:
        if self.is_index:
            listed = ", ".join(map(write_name, self.columns))
            return f"CREATE INDEX {write_name(self.name)} ON {write_name(self.table)} ({listed});"
        given = ", ".join(f"{name} = '{value}'" for name, value in self.options)
        options = f" WITH ({given})" if given else ""
        return f"CREATE MATERIALIZED VIEW {write_name(self.name)}{options} AS\n  {self.definition};"
