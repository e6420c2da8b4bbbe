r"""Backslash commands of the shell: a table of names, each with its function and its help."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from belvedere.interfaces.shell.describe import describe
from belvedere.interfaces.shell.display import change_display, list_display, parse_switch
from belvedere.values.quoting import quote_literal

if TYPE_CHECKING:
    from belvedere.interfaces.shell.shell import Shell

WATCH_S = 2.0


class ShellCommand(NamedTuple):
    """`run` gets the shell, the command's name and the rest of the line; False: it failed."""

    run: Callable[[Shell, str, str], bool]
    usage: str
    help: str


def run_command(shell: Shell, line: str) -> bool:
    """Run a backslash command; False when it failed."""
    name, _, rest = line.strip().partition(" ")
    command = COMMANDS.get(name)
    if command is None:
        shell.print_error(f"no command {name}; \\? lists them")
        return False
    return command.run(shell, name, rest.strip())


def _show_help(shell: Shell, name: str, rest: str) -> bool:
    width = max(len(command.usage) for command in COMMANDS.values())
    lines = {f"  {c.usage:<{width}}  {c.help}" for c in COMMANDS.values() if c.usage}
    shell.page_output("\n".join(sorted(lines)))
    return True


def _switch_timing(shell: Shell, name: str, rest: str) -> bool:
    shell.timing = parse_switch(rest, shell.timing)
    shell.print_line(f"timing is {'on' if shell.timing else 'off'}")
    return True


def _switch_expanded(shell: Shell, name: str, rest: str) -> bool:
    return change_display(shell, "expanded", rest)


def _change_display(shell: Shell, name: str, rest: str) -> bool:
    if not rest:
        shell.print_line(list_display(shell))
        return True
    setting, _, value = rest.partition(" ")
    return change_display(shell, setting, value.strip())


def _include_file(shell: Shell, name: str, rest: str) -> bool:
    return shell.run_file(Path(rest.strip("'\"")))


def _quit_shell(shell: Shell, name: str, rest: str) -> bool:
    raise EOFError


def _redirect_output(shell: Shell, name: str, rest: str) -> bool:
    """Write results to a file from now on; without a name, to the terminal again."""
    try:
        shell.redirect_output(Path(rest.strip("'\"")).expanduser() if rest else None)
    except OSError as error:
        shell.print_error(f"error: {error}")
        return False
    return True


def _edit_text(shell: Shell, name: str, rest: str) -> bool:
    """Run what $EDITOR leaves of the last statement, or of a file."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    if rest:
        path = Path(rest.strip("'\"")).expanduser()
        return _run_editor(shell, editor, path) and shell.run_file(path)
    with tempfile.TemporaryDirectory(prefix="belvedere-") as directory:
        path = Path(directory) / "statement.sql"
        path.write_text(shell.last_statement, encoding="utf-8")
        return _run_editor(shell, editor, path) and shell.run_file(path)


def _run_editor(shell: Shell, editor: str, path: Path) -> bool:
    try:
        subprocess.run([*shlex.split(editor), str(path)], check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        shell.print_error(f"error: the editor failed: {error}")
        return False
    return True


_WATCH = re.compile(
    r"(?:(?:i(?:nterval)?=)?(?P<every>\d+(?:\.\d+)?))?\s*(?:c(?:ount)?=(?P<count>\d+))?"
)


def _watch_statement(shell: Shell, name: str, rest: str) -> bool:
    """Run the last statement again and again, until Ctrl-C or so many times."""
    found = _WATCH.fullmatch(rest)
    if found is None or not shell.last_statement:
        usage = r"usage: \watch [SECONDS] [c=COUNT]"
        shell.print_error(usage if found is None else "there is no statement to watch yet")
        return False
    every = float(found["every"] or WATCH_S)
    left = int(found["count"] or 0)
    waiting = threading.Event()
    try:
        while shell.run_statement(shell.last_statement):
            left -= 1
            if left == 0:
                return True
            waiting.wait(every)
    except KeyboardInterrupt:
        return True
    return False


_COPY = re.compile(
    r"(?P<what>\(.*\)|[^()\s]+(?:\s*\([^()]*\))?)\s+(?P<way>from|to)\s+"
    r"(?P<path>'(?:[^']|'')*'|\S+)\s*(?P<options>.*?)\s*;?",
    re.IGNORECASE | re.DOTALL,
)


def _copy_file(shell: Shell, name: str, rest: str) -> bool:
    r"""`\copy t from 'file.csv' csv header`: COPY with the path seen from here. Options in
    parentheses or after WITH are those of COPY itself."""
    found = _COPY.fullmatch(rest)
    options = None if found is None else _copy_options(found["options"], found["path"].strip("'"))
    if found is None or options is None:
        shell.print_error(f"usage: {COMMANDS[name].usage}")
        return False
    path = found["path"]
    if path.startswith("'"):
        path = path[1:-1].replace("''", "'")
    place = quote_literal(str(Path(path).expanduser().resolve()))
    return shell.run_statement(f"COPY {found['what']} {found['way']} {place} {options}")


def _copy_options(written: str, path: str) -> str | None:
    """The options in the syntax of COPY; None if they cannot be parsed."""
    if written.startswith("(") or written.lower().startswith("with"):
        return written
    words = written.lower().split()
    if not set(words) <= {"csv", "parquet", "text", "header"}:
        return None
    forms = [word for word in words if word != "header"]
    form = forms[0] if forms else ("parquet" if path.endswith(".parquet") else "csv")
    header = ", header true" if "header" in words and form == "csv" else ""
    return f"(format {form}{header})"


def _describers() -> dict[str, ShellCommand]:
    """The commands that describe; the + of each has no line of its own."""
    helps = {
        "\\d": "what exists, or columns, keys, indexes and maintenance of NAME; + its size",
        "\\dt": "tables; + the views that read them",
        "\\dv": "plain views",
        "\\dm": "materialized views; + their maintenance",
        "\\di": "indexes, also of views; + their columns",
        "\\ds": "sequences",
    }
    found = {}
    for name, text in helps.items():
        usage = f"{name}[+] [{'PATTERN' if name[2:] else 'NAME'}]"
        found[name] = ShellCommand(describe, usage, text)
        found[f"{name}+"] = ShellCommand(describe, "", text)
    return found


COMMANDS: dict[str, ShellCommand] = {
    "\\?": ShellCommand(_show_help, "\\?", "this list"),
    **_describers(),
    "\\copy": ShellCommand(
        _copy_file,
        "\\copy T|(QUERY) from|to FILE [csv|parquet] [header] | (OPTIONS)",
        "COPY with a file of this machine",
    ),
    "\\e": ShellCommand(_edit_text, "\\e [FILE]", "edit the last statement or FILE, and run it"),
    "\\i": ShellCommand(_include_file, "\\i FILE", "run the statements of a file"),
    "\\o": ShellCommand(_redirect_output, "\\o [FILE]", "results to FILE, or back"),
    "\\pset": ShellCommand(
        _change_display, "\\pset [NAME [VALUE]]", "expanded, format, null, pager, tuples_only"
    ),
    "\\q": ShellCommand(_quit_shell, "\\q", "leave (also Ctrl-D)"),
    "\\timing": ShellCommand(_switch_timing, "\\timing [on|off]", "how long statements take"),
    "\\watch": ShellCommand(
        _watch_statement, "\\watch [SECONDS] [c=COUNT]", "run the last statement again and again"
    ),
    "\\x": ShellCommand(_switch_expanded, "\\x [on|off]", "one column per line, or back"),
}
