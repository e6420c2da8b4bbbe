"""The row-atomic commit: transactions over a store that promises single rows and nothing more.

Every function here that touches the store is a step: a generator that yields operations of
`kv.cell` and is sent their results. Nothing here does I/O, reads a clock or draws a number by
itself, so HBase, the memory double, the simulation and the exhaustive explorer drive the very same
code. Read in this order: `layout` (rows of the protocol), `node`, `locks`, `log`, `commit`,
`advance`, `read`, `fold`, `forget`, `barrier`; then `protocol`, which implements the commit
contract with them (`columns`, `reader`, `wanted`), and `engine`, which a database runs on
(`changes`: its log).
"""
