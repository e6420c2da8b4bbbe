"""Window frames: which rows around a row a window function sees."""

from __future__ import annotations

import enum
from typing import NamedTuple

from belvedere.plan.expressions import Expression


class FrameMode(enum.StrEnum):
    ROWS = "rows"
    RANGE = "range"
    GROUPS = "groups"


class FrameSide(enum.StrEnum):
    UNBOUNDED_PRECEDING = "unbounded preceding"
    PRECEDING = "preceding"
    CURRENT_ROW = "current row"
    FOLLOWING = "following"
    UNBOUNDED_FOLLOWING = "unbounded following"


class FrameBound(NamedTuple):
    """`offset` only with PRECEDING and FOLLOWING; it does not depend on the row."""

    side: FrameSide
    offset: Expression | None = None


class Frame(NamedTuple):
    """`exclude` is '', 'current row', 'group' or 'ties'."""

    mode: FrameMode = FrameMode.RANGE
    start: FrameBound = FrameBound(FrameSide.UNBOUNDED_PRECEDING)
    end: FrameBound = FrameBound(FrameSide.CURRENT_ROW)
    exclude: str = ""
