-- a constant that fails does so without rows too, unless it is cut off or nobody reads it
CREATE TABLE f (id integer PRIMARY KEY, x integer);
SELECT 1 / 0 FROM f;
SELECT CASE WHEN id = 1 THEN 1 ELSE 1 / 0 END FROM f;
SELECT coalesce(id, 1 / 0) FROM f;
SELECT coalesce(1, 1 / 0) FROM f;
SELECT 1 FROM f WHERE false AND 1 / 0 = 1;
SELECT 1 FROM f WHERE 1 / 0 = 1 AND false;
SELECT x FROM f WHERE id / 0 = NULL;
SELECT EXISTS (SELECT 1 / 0);
SELECT 1 FROM (SELECT 1 / 0 AS y FROM f) s;
SELECT 1 IN (1, 1 / 0);
UPDATE f SET x = 1 / 0 WHERE false;
INSERT INTO f VALUES (1, 1);
SELECT x FROM f WHERE id / 0 = NULL;
SELECT CASE id WHEN 1 THEN 5 ELSE id / 0 END FROM f;
SELECT CASE count(*) WHEN 13 THEN 2147483647 * 2 + NULL::integer END FROM f;
SELECT nullif(NULL::real, 1 / CASE WHEN id = 1 THEN 20 / 0 END) FROM f;
