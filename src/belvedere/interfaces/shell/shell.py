"""The SQL shell: reads statements, runs them and prints their results.

Ctrl-C stops the running statement, not the shell. A long statement shows that it is still
running. Long output goes through a pager when there is a terminal.
"""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from belvedere.interfaces import dbapi
from belvedere.interfaces.shell.commands import run_command
from belvedere.interfaces.shell.progress import ProgressBar
from belvedere.interfaces.shell.render import OutputFormat, escape_controls, render
from belvedere.interfaces.shell.statements import (
    caret_lines,
    find_statement_end,
    is_complete,
    is_cut_dump,
    skip_blanks,
)
from belvedere.session.session import Session

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

    from belvedere.interfaces.remote import RemoteSession

PROGRESS_AFTER_S = 2.0
HISTORY = "~/.belvedere_history"


class Shell:
    def __init__(
        self, connection: dbapi.Connection, form: OutputFormat, out: TextIO, errors: TextIO
    ) -> None:
        self.connection = connection
        self.format = form
        self.timing = False
        self.expanded = False
        self.tuples_only = False
        self.pager = True
        self.null_text = "NULL"
        self.last_statement = ""
        self._out = self._terminal = out
        self._errors = errors
        self._is_interactive = False

    @property
    def session(self) -> Session | RemoteSession:
        return self.connection.session

    def print_line(self, text: str) -> None:
        print(escape_controls(text) if self._out.isatty() else text, file=self._out)

    def print_error(self, text: str) -> None:
        print(escape_controls(text), file=self._errors)

    def page_output(self, text: str) -> None:
        """Print rows, through a pager when they do not fit the terminal."""
        pages = self._is_interactive and self.pager and self._out is self._terminal
        if pages and text.count("\n") >= shutil.get_terminal_size().lines - 1:
            import pydoc  # heavy

            os.environ.setdefault("LESS", "-SRXF")
            pydoc.pager(escape_controls(text))
        else:
            self.print_line(text)

    def redirect_output(self, path: Path | None) -> None:
        """Write results to a file from now on; None: where they went at first."""
        if self._out is not self._terminal:
            self._out.close()
        self._out = self._terminal
        if path is not None:
            self._out = path.open("w", encoding="utf-8", newline="")

    # -- running ------------------------------------------------------------------------------

    def run_text(self, text: str) -> bool:
        """Run every statement and command of a text; stop at the first that fails. Nothing of a
        dump whose end is missing is run."""
        if is_cut_dump(text):
            self.print_error("error: the dump is not whole: its last line is missing")
            return False
        at = skip_blanks(text, 0)
        while at < len(text):
            if text[at] == "\\":
                end = text.find("\n", at) + 1 or len(text)
                good, at = run_command(self, text[at:end].strip()), end
            else:
                end = find_statement_end(text, at) or len(text)
                statement = text[at:end].strip()
                good, at = not statement.strip(";") or self.run_statement(statement), end
            if not good:
                return False
            at = skip_blanks(text, at)
        return True

    def run_file(self, path: Path) -> bool:
        try:
            with path.expanduser().open(encoding="utf-8", newline="") as file:
                text = file.read()  # with line ends as they are: values may hold them
        except (OSError, UnicodeDecodeError) as error:
            self.print_error(f"error: {error}")
            return False
        return self.run_text(text)

    def run_statement(self, text: str) -> bool:
        started, self.last_statement = time.perf_counter(), text
        bar = ProgressBar(self._errors)
        progress = self._start_progress_timer(bar, started)
        notices = self.session.notices
        told = notices.total_count
        self.session.on_progress = bar.show_progress
        try:
            cursor = self.connection.execute(text)
        except dbapi.Error as error:
            self._print_failure(text, error)
            return False
        except KeyboardInterrupt:
            self.print_error("canceled")
            return False
        finally:
            progress.cancel()
            bar.clear_line()
            for notice in notices.list_after_count(told):
                self.print_error(f"notice: {notice}")
        spent_ms = (time.perf_counter() - started) * 1000  # not of the pager and its reader
        self._print_result(cursor)
        if self.timing:
            self.print_line(f"time: {spent_ms:.3f} ms")
        return True

    def _start_progress_timer(self, bar: ProgressBar, started: float) -> threading.Timer:
        """Start a timer that reports a statement as still running, if errors go to a terminal."""

        def print_still_running() -> None:
            spent = time.perf_counter() - started
            bar.print_unless_shown(f"still running after {spent:.0f} s; Ctrl-C stops it")

        timer = threading.Timer(PROGRESS_AFTER_S, print_still_running)
        timer.daemon = True
        if self._errors.isatty():
            timer.start()
        return timer

    def _print_result(self, cursor: dbapi.Cursor) -> None:
        result = cursor.result
        if result.fields is None:
            if self.format is OutputFormat.TABLE:
                count = "" if result.affected < 0 else f" {result.affected}"
                self.print_line(f"{result.tag}{count}")
            return
        result.convert_arrow_to_rows()
        shown = render(
            result.fields,
            result.rows,
            self.format,
            expanded=self.expanded,
            null=self.null_text,
            tuples_only=self.tuples_only,
        )
        self.page_output(shown)

    def _print_failure(self, text: str, error: dbapi.Error) -> None:
        self.print_error(f"error {error.sqlstate}: {error}")
        for line in caret_lines(text, error.position):
            self.print_error(line)

    # -- interactive --------------------------------------------------------------------------

    def run_interactive(self) -> bool:
        self._is_interactive = True
        prompt = self._make_prompt()
        self.print_line("belvedere shell; \\? for help, \\q to leave")
        while True:
            try:
                text = prompt.prompt(self._prompt_text())
            except KeyboardInterrupt:
                continue
            except EOFError:
                return True
            try:
                self.run_text(text)
            except EOFError:
                return True

    def _prompt_text(self) -> str:
        state = self.session.transactions
        if state.failed:
            return "belvedere!> "
        return "belvedere*> " if state.open is not None else "belvedere> "

    def _make_prompt(self) -> PromptSession[str]:
        from belvedere.interfaces.shell.prompt import make_prompt  # heavy

        return make_prompt(self.session, Path(HISTORY).expanduser(), is_complete)
