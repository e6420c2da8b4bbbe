"""Stores for tests: they fail, lose power, record, compare, and delay messages.

In reading order; an entry uses only those before it:

    cells          a row-atomic store in memory, with exactly HBase's rules
    cells_faults   a row-atomic store with seeded faults, for callers in threads and real time
    intercept      a batch store that wraps another one and passes every call through one method
    counter        a batch store that counts the keys it reads and writes
    mirror         two batch stores that must agree: every answer of both is compared
    cells_network  a row-atomic store behind a simulated faulty network, in virtual time
    faults         a batch store that fails on request: the nth call, before or after its effect
    power_loss     a memory store that can lose power, and with it what was not synced
    recorder       a batch store that prints every call as one line, for golden tests
"""
