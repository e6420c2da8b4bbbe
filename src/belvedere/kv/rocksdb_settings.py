"""The RocksDB settings of a store, each with its reason.

Memory of an idle store is the block cache, one write buffer, and the indexes and filters of its
open files. What must be replayed after a crash is at most the write buffers: opening stays short.
"""

from __future__ import annotations

from rocksdict import (
    BlockBasedOptions,
    Cache,
    ChecksumType,
    DBCompressionType,
    DBRecoveryMode,
    Options,
)

CACHE_BYTES = 32 * 1024 * 1024
WRITE_BUFFER_BYTES = 32 * 1024 * 1024
WRITE_BUFFERS_MAX = 3
OPEN_FILES_MAX = 512
TARGET_FILE_BYTES = 64 * 1024 * 1024


def store_options(*, create: bool, salvage: bool, cache_bytes: int = CACHE_BYTES) -> Options:
    """Options for opening a store, and for the sorted files it ingests."""
    options = Options(raw_mode=True)
    options.create_if_missing(create)
    options.set_error_if_exists(False)
    options.set_paranoid_checks(True)
    options.set_wal_recovery_mode(_recovery_mode(salvage))
    options.set_block_based_table_factory(_table_options(cache_bytes))
    options.set_compression_type(DBCompressionType.lz4())
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.set_max_write_buffer_number(WRITE_BUFFERS_MAX)
    options.set_target_file_size_base(TARGET_FILE_BYTES)
    options.set_max_open_files(OPEN_FILES_MAX)
    options.set_max_background_jobs(2)
    # The engine's own text log and statistics: enough to look back, never a disk filler.
    options.set_keep_log_file_num(5)
    options.set_max_log_file_size(1024 * 1024)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    return options


def _recovery_mode(salvage: bool) -> DBRecoveryMode:
    """A record torn at the tail of the log was never acknowledged; damage elsewhere is refused.

    The default of RocksDB, point in time, stops at the first damage and opens with the rest gone.
    """
    if salvage:
        return DBRecoveryMode.point_in_time()
    return DBRecoveryMode.tolerate_corrupted_tail_records()


def _table_options(cache_bytes: int) -> BlockBasedOptions:
    table = BlockBasedOptions()
    table.set_block_cache(Cache(cache_bytes))
    # Indexes and filters stay outside of the cache, about 2 % of the data of open files. Inside it,
    # one filter of a large file does not fit a shard of the cache and is read again for every get.
    table.set_cache_index_and_filter_blocks(False)
    table.set_bloom_filter(10, False)
    table.set_checksum_type(ChecksumType.xxh3())
    table.set_format_version(5)
    return table
