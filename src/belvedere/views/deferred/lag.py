"""The lag of views, from samples of (position, monotonic time), and maintenance statistics.

A sample says: at this time, this position was published. So a commit after that position is younger
than the sample, and a commit up to it is older. Nothing else tells the age of a commit: clocks of
records may jump.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from dataclasses import dataclass, field

SAMPLES_MAX = 8_192
LAGS_MAX = 1_024


class PositionSamples:
    """Samples of the published position over time. Thread-safe."""

    def __init__(self) -> None:
        self._mutex = threading.Lock()
        self._positions: list[int] = []
        self._times: list[float] = []

    def add_sample(self, position: int, now: float) -> None:
        """At `now`, `position` was the newest published. Of a position, the first and the last
        sample are stored."""
        with self._mutex:
            positions, times = self._positions, self._times
            if positions and position < positions[-1]:
                return  # another thread was faster
            if len(positions) > 1 and positions[-1] == position == positions[-2]:
                times[-1] = now
                return
            positions.append(position)
            times.append(now)
            if len(positions) > SAMPLES_MAX:
                del positions[: SAMPLES_MAX // 2], times[: SAMPLES_MAX // 2]

    def max_commit_age_after(self, mark: int, now: float) -> float | None:
        """No commit after `mark` is older than this; None when it is not known."""
        with self._mutex:
            at = bisect_right(self._positions, mark)
            return None if not at else now - self._times[at - 1]

    def estimate_commit_age_after(self, mark: int, now: float) -> float:
        """About how old the oldest commit after `mark` is, by when it was first sampled."""
        with self._mutex:
            at = bisect_right(self._positions, mark)
            return 0.0 if at == len(self._positions) else max(0.0, now - self._times[at])


@dataclass(slots=True)
class MaintenanceStatistics:
    """Statistics of one view's maintenance in this process."""

    changes: int = 0
    seconds: float = 0.0
    batches: int = 0
    last_choice: str | None = None  # the tier that computed the last batch, and why
    lags: deque[float] = field(default_factory=lambda: deque(maxlen=LAGS_MAX))

    def add_batch(self, changes: int, seconds: float, lag_s: float) -> None:
        self.changes += changes
        self.seconds += seconds
        self.batches += 1
        self.lags.append(lag_s)

    @property
    def seconds_per_change(self) -> float | None:
        return self.seconds / self.changes if self.changes else None

    def lag_quantile_s(self, share: float) -> float | None:
        """The lag that this share of the batches did not exceed."""
        found = sorted(self.lags)
        return found[min(len(found) - 1, int(share * len(found)))] if found else None
