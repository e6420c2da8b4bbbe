-- case 11/3: DuckDB forgot the order of the key inside a lateral query
CREATE TABLE t (id integer PRIMARY KEY, b integer);
CREATE TABLE u (id integer PRIMARY KEY, c integer);
INSERT INTO t SELECT g, g % 5 FROM generate_series(1, 40) g;
INSERT INTO u VALUES (1, 3), (2, NULL), (3, 4), (4, 4);
SELECT u.id, s.m FROM u JOIN LATERAL (SELECT t.id FROM t WHERE t.b IS DISTINCT FROM u.c ORDER BY t.id LIMIT 2) AS s (m) ON true;
SELECT u.id, s.m FROM u JOIN LATERAL (SELECT t.id FROM t WHERE t.id > u.c ORDER BY t.id DESC LIMIT 2) AS s (m) ON true;
SELECT u.id, (SELECT t.id FROM t WHERE t.b = u.c ORDER BY t.id DESC LIMIT 1) FROM u;
SELECT t.id FROM t WHERE t.b IN (SELECT u.c FROM u WHERE u.id <> t.id) OR t.b = 0 ORDER BY t.id;
