-- DuckDB read a scan in reverse key order the right way round
CREATE TABLE i (id integer PRIMARY KEY, a integer);
INSERT INTO i SELECT g, g % 3 FROM generate_series(1, 20) g;
SELECT id FROM i ORDER BY id DESC LIMIT 3 OFFSET 1;
SELECT * FROM (SELECT id FROM i ORDER BY id DESC LIMIT 2) s ORDER BY id;
SELECT ARRAY(SELECT id FROM i WHERE a = 1 ORDER BY id DESC);
