"""Settings of an open store, with their defaults. A setting's unit is the end of its name."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Durability(enum.StrEnum):
    FULL = "full"  # an acknowledged commit survives a power cut
    OFF = "off"  # it survives the death of the process, not of the machine


@dataclass(frozen=True, slots=True)
class Config:
    """How a store behaves while it is open; nothing of it is stored."""

    durability: Durability = Durability.FULL
    lock_wait_ms_max: int = 10_000
    section_wait_ms_max: int = 60_000
    log_retention_records_min: int = 100_000
    log_retention_records_max: int = 10_000_000
    undo_bytes_in_memory_max: int = 256 * 1024 * 1024
    statement_retries_max: int = 100
    outcomes_kept: int = 10_000
    resume_builds: bool = False  # at open, resume interrupted backfills of views, or drop them
    columnar_bytes_max: int = 512 * 1024 * 1024  # of the columnar copies; 0: none are kept
    columnar_rows_min: int = 1  # smaller tables are scanned for every statement
