"""What makes the SQL text of views work in jobs, as the commands pass it in."""

from __future__ import annotations

from belvedere.pipeline.store.tables import DefinitionCompiler
from belvedere.session.materialized.create import bind_simplified_definition
from belvedere.session.statement.catalog_expressions import compile_row_expression

DEFINITIONS = DefinitionCompiler(bind_simplified_definition, compile_row_expression)
