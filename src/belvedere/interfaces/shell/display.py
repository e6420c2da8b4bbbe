r"""How results are shown: the settings of \pset and \x."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belvedere.interfaces.shell.render import OutputFormat

if TYPE_CHECKING:
    from belvedere.interfaces.shell.shell import Shell

_SWITCHES = {"expanded": "expanded display", "pager": "the pager", "tuples_only": "rows only"}
_FORMATS = {"aligned": OutputFormat.TABLE, "": OutputFormat.TABLE}


def parse_switch(text: str, now: bool) -> bool:
    """on, off, or the other one."""
    word = text.strip("; ").lower()
    if word in ("on", "true", "1"):
        return True
    return False if word in ("off", "false", "0") else not now


def change_display(shell: Shell, name: str, value: str) -> bool:
    """Change a setting and say what it is now; False when there is no such setting or value."""
    value = value.rstrip(";").strip()
    if name in _SWITCHES:
        now = parse_switch(value, getattr(shell, name))
        setattr(shell, name, now)
        shell.print_line(f"{_SWITCHES[name]} is {'on' if now else 'off'}")
    elif name == "null":
        shell.null_text = _unquote(value)
        shell.print_line(f"null is shown as {shell.null_text!r}")
    elif name == "format":
        try:
            shell.format = _FORMATS.get(value) or OutputFormat(value)
        except ValueError:
            known = ", ".join(OutputFormat)
            shell.print_error(f"no format {value}: {known}")
            return False
        shell.print_line(f"format is {shell.format}")
    else:
        shell.print_error(f"no setting {name}: expanded, format, null, pager, tuples_only")
        return False
    return True


def list_display(shell: Shell) -> str:
    switches = [f"{name:<12} {'on' if getattr(shell, name) else 'off'}" for name in _SWITCHES]
    return "\n".join(
        sorted([*switches, f"{'format':<12} {shell.format}", f"{'null':<12} {shell.null_text!r}"])
    )


def _unquote(text: str) -> str:
    quoted = len(text) >= 2 and text[0] == text[-1] == "'"
    return text[1:-1].replace("''", "'") if quoted else text
