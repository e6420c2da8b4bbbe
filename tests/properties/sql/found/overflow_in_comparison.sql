-- case 1/6: DuckDB moved the constant over, and the overflow was gone
CREATE TABLE v (id integer PRIMARY KEY, c bigint, i integer);
INSERT INTO v VALUES (3, 7, 3);
SELECT id FROM v WHERE (c * 9223372036854775806) > 0;
SELECT id FROM v WHERE (c + 9223372036854775806) > 0;
SELECT id FROM v WHERE (i * 2147483647)::bigint = 5;
SELECT id FROM v WHERE 0 < 9223372036854775806 - c - c;
SELECT id FROM v WHERE i * 2147483647 NOT BETWEEN 1 AND 5;
