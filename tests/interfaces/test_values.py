"""Values of results as psycopg returns them."""

from __future__ import annotations

import random
import struct

import belvedere


def test_a_real_comes_back_as_the_shortest_float_that_is_the_same_real(rng: random.Random) -> None:
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute("CREATE TABLE t (id int PRIMARY KEY, r real)")
        con.execute("INSERT INTO t VALUES (1, 0.01), (2, 16777216), (3, 1e-45), (4, 'NaN')")
        found = [r for (r,) in con.execute("SELECT r FROM t ORDER BY id")]
        assert repr(found) == "[0.01, 16777216.0, 1e-45, nan]"
        assert con.execute("SELECT r FROM t WHERE id = ?", (1,)).fetchone() == (0.01,)
        assert con.execute("SELECT array_agg(r) FROM t WHERE id < 3").fetchone() == (
            [0.01, 16777216.0],
        )
        for _ in range(300):
            [real] = struct.unpack("f", rng.randbytes(4))
            con.execute("UPDATE t SET r = ? WHERE id = 1", (real,))
            [(shown,)] = con.execute("SELECT r FROM t WHERE id = 1").fetchall()
            assert struct.pack("f", shown) == struct.pack("f", real) or real != real
            assert len(repr(shown)) <= len(repr(real))
