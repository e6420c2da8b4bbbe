"""Handles that a forked child inherits and must not use.

A fork copies the memory of its parent, but not its threads. A store that the child wrote through
its copy would lose what the parent writes, and RocksDB and DuckDB wait for threads that are not
there, even when they are only closed. So every handle of an open store is tracked here, and in the
child

- it lets go of what the two processes would share (locks of files, sockets): `abandon_after_fork`;
- objects of the engines are kept for good, so that nothing destroys them, also when the child ends;
- every use of the handle is refused, by another class of the object. Closing it does nothing.

The parent and the paths of its statements pay nothing for that.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Any, NoReturn, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from belvedere.errors import Error, InvalidInput

ShowError = Callable[[Error], Exception]
"""What turns an error into the exception that a door raises."""


@runtime_checkable
class SharedHandle(Protocol):
    def abandon_after_fork(self) -> None:
        """Let go, in a child, of what it shares with its parent; touch no engine."""


_handles: WeakKeyDictionary[object, ShowError] = WeakKeyDictionary()
_heir_actions: list[Callable[[], None]] = []


def _show_unchanged(error: Error) -> Exception:
    return error


def track_handle(handle: object, shown: ShowError = _show_unchanged) -> None:
    """Refuse this handle in every child that is forked while it lives."""
    _handles[handle] = shown


def run_in_heirs(action: Callable[[], None]) -> None:
    """Run an action in every child that inherits a handle: for objects of which there are too many
    to track each."""
    _heir_actions.append(action)


def keep_forever(thing: object) -> None:
    """Let nothing destroy an object of an engine whose threads are in another process."""
    if thing is None:
        return
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
    _leave_engines_at_exit(os.getpid())


@cache
def _leave_engines_at_exit(process: int) -> None:
    """Let this process end without the engines' own end, which would crash or wait for ever. Until
    then Python ends as always: the status, and what is to run at exit, stay."""
    libc = ctypes.CDLL(None)
    if hasattr(libc, "on_exit"):  # glibc; it runs before what the engines have registered
        libc.on_exit(libc._exit, None)
    sys._belvedere_quiet_end = _QuietEnd()  # type: ignore[attr-defined]


class _QuietEnd:
    """Silences, when the interpreter has gone, the report of DuckDB's binding that objects leaked:
    they were kept on purpose."""

    def __init__(self) -> None:
        self._null = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
        self._redirect = os.dup2

    def __del__(self) -> None:
        self._redirect(self._null, 2)


def refuse_inherited(handle: object, shown: ShowError = _show_unchanged) -> None:
    """In a child: make every use of an object raise, from now on."""
    object.__setattr__(handle, "__class__", _refusing_class(type(handle), shown))


def _refusing_class(kind: type, shown: ShowError) -> type:
    opened_by = os.getppid()

    def refuse_use(handle: object, name: str, *_: object) -> Any:
        if name == "close":
            return _do_nothing
        if name == "__class__":
            return kind
        _raise_refusal(shown, opened_by)

    members = {
        "__slots__": (),
        "__getattribute__": refuse_use,
        "__setattr__": refuse_use,
        "__exit__": _do_nothing,
    }
    return type(kind.__name__, (kind,), members)


def _do_nothing(*_: object) -> None:
    """What an inherited handle does when it is closed."""


def _raise_refusal(shown: ShowError, opened_by: int) -> NoReturn:
    raise shown(
        InvalidInput(
            "the connection belongs to another process",
            sqlstate="08003",
            hint="connect in the forked process",
            opened_by=opened_by,
        )
    )


def _abandon_handles() -> None:
    handles = list(_handles.items())
    for handle, _ in handles:
        if isinstance(handle, SharedHandle):
            handle.abandon_after_fork()
    for handle, shown in handles:
        refuse_inherited(handle, shown)
    _handles.clear()
    if handles:
        for act in _heir_actions:
            act()


os.register_at_fork(after_in_child=_abandon_handles)
