"""The line editor: completion, highlighting, history; Enter runs the text once it is complete."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.history import FileHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer
from pygments.lexers.sql import PostgresLexer

from belvedere.interfaces.shell.completion import CatalogHolder, SqlCompleter


def make_prompt(
    session: CatalogHolder, history: Path, is_complete: Callable[[str], bool]
) -> PromptSession[str]:
    if history.parent.is_dir():
        history.touch(mode=0o600)  # statements hold data
    return PromptSession(
        completer=ThreadedCompleter(SqlCompleter(session)),
        complete_while_typing=True,
        history=FileHistory(str(history)),
        auto_suggest=AutoSuggestFromHistory(),
        lexer=PygmentsLexer(PostgresLexer),
        multiline=True,
        key_bindings=_make_key_bindings(is_complete),
        prompt_continuation=lambda width, line, wrapped: " " * (width - 4) + "  > ",
        enable_open_in_editor=True,
    )


def _make_key_bindings(is_complete: Callable[[str], bool]) -> KeyBindings:
    keys = KeyBindings()

    @keys.add("enter")
    def handle_enter(event: KeyPressEvent) -> None:
        """Run a complete statement; otherwise insert a new line."""
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.current_completion:
            buffer.complete_state = None
        elif is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return keys
