-- case 12/81: two equal expressions of a ROLLUP became one column
CREATE TABLE t (id integer PRIMARY KEY, a integer);
INSERT INTO t VALUES (8, 2), (9, 3);
SELECT a, coalesce(a) FROM t GROUP BY ROLLUP (coalesce(a), a);
SELECT a, a + 0, sum(a), grouping(a) FROM t GROUP BY CUBE (a, a + 0);
