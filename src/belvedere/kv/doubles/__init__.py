"""Stores for tests: they fail, lose power, record, compare, and delay messages.

In reading order; an entry uses only those before it:

    cells          A row-atomic store in memory, with exactly HBase's rules
    cells_faults   A CellStore with seeded faults, for callers that run in threads and in real
                   time
    intercept      A batch store that wraps another one and passes every call through one method
    mirror         two batch stores that must agree: every call goes to both, every answer is
                   compared
    cells_network  A simulated row-atomic store behind a faulty network, in virtual time, on one
                   thread
    faults         A batch store that fails on request: the nth call of a kind, before or after
                   its effect
    power_loss     A memory store that can lose power: what was not synced may go, newest first,
                   batch by batch
    recorder       A batch store that writes down every call as one printable line, for golden
                   tests
"""
