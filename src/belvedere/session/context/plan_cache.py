"""The plan cache: compiled statements by their text."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

PLAN_CHARACTERS_MAX = 2_000_000


class PlanCache:
    """Compiled statements by text; the oldest are evicted first. A plan is of one catalog.

    The memory of a plan grows with its text, some 50 bytes for each character, so the cache bounds
    the total length of texts as well as their number: long lists of constants do not exhaust it.
    """

    def __init__(self, size: int, characters: int = PLAN_CHARACTERS_MAX) -> None:
        self._size = size
        self._characters = characters
        self._mutex = threading.Lock()
        self._entries: OrderedDict[Any, Any] = OrderedDict()
        self._character_count = 0  # characters
        self.get = self._entries.get  # without the lock: a dict read is atomic

    def put(self, key: Any, entry: Any) -> None:
        with self._mutex:
            if key in self._entries:
                self._remove_key(key)
            self._entries[key] = entry
            self._character_count += _key_text_length(key)
            while len(self._entries) > self._size or self._character_count > self._characters:
                self._remove_key(next(iter(self._entries)))

    def drop_entry(self, entry: Any) -> None:
        with self._mutex:
            for key in [key for key, known in self._entries.items() if known is entry]:
                self._remove_key(key)

    def _remove_key(self, key: Any) -> None:
        del self._entries[key]
        self._character_count -= _key_text_length(key)

    def clear(self) -> None:
        with self._mutex:
            self._entries.clear()
            self._character_count = 0

    def __len__(self) -> int:
        return len(self._entries)


def _key_text_length(key: Any) -> int:
    """A key is a text, or the settings of a plan and a text."""
    return len(key[1] if isinstance(key, tuple) else key)
