"""What makes the SQL text of views work in jobs, as the commands pass it in."""

from __future__ import annotations

from belvedere.pipeline.inputs import DefinitionCompiler
from belvedere.session.expressions import compile_table_expression
from belvedere.session.views import bind_definition

DEFINITIONS = DefinitionCompiler(bind_definition, compile_table_expression)
