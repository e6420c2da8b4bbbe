-- Statements for test_like_postgres.py: one blank line between them; run in order, each by
-- PostgreSQL and by Belvedere in both tiers. Rows are compared as bags, or as lists after ORDER BY.

CREATE TABLE dept (id int PRIMARY KEY, name text NOT NULL UNIQUE, budget numeric(12,2))

CREATE TABLE emp (id int PRIMARY KEY, dept int REFERENCES dept (id) ON DELETE CASCADE, name varchar(20), salary numeric(10,2) CHECK (salary >= 0), hired date, boss int, active boolean DEFAULT true)

INSERT INTO dept VALUES (1, 'dev', 1000.00), (2, 'ops', 500.50), (3, 'hr', NULL), (4, 'void', 0)

INSERT INTO emp (id, dept, name, salary, hired, boss) VALUES (1, 1, 'ann', 100.00, '2020-01-05', NULL), (2, 1, 'bob', 80.50, '2021-03-01', 1), (3, 2, 'cid', 70.25, '2021-03-01', 1), (4, 2, 'dan', NULL, NULL, 3), (5, NULL, 'eve', 99.99, '2019-07-07', 1), (6, 3, NULL, 10.00, '2022-12-31', 5)

SELECT * FROM emp ORDER BY id

SELECT e.name, d.name FROM emp e JOIN dept d ON d.id = e.dept ORDER BY e.id

SELECT e.name, d.name FROM emp e LEFT JOIN dept d ON d.id = e.dept AND d.budget > 600 ORDER BY e.id

SELECT e.id, d.id FROM emp e RIGHT JOIN dept d ON d.id = e.dept

SELECT e.id, d.id FROM emp e FULL JOIN dept d ON d.id = e.dept

SELECT e.id, d.id FROM emp e FULL JOIN dept d ON d.id = e.dept AND e.salary > 75

SELECT a.id, b.id FROM emp a, emp b WHERE a.boss = b.id

SELECT a.id, b.id FROM emp a CROSS JOIN dept b WHERE a.id < 3

SELECT * FROM dept NATURAL JOIN (SELECT id, salary FROM emp) x

SELECT id, name FROM emp JOIN dept USING (id, name)

SELECT dept, count(*), count(salary), sum(salary), avg(salary), min(hired), max(name) FROM emp GROUP BY dept

SELECT dept, count(*) FROM emp GROUP BY dept HAVING count(*) > 1 ORDER BY dept

SELECT count(*), sum(salary), avg(salary), max(salary), min(id) FROM emp WHERE false

SELECT count(DISTINCT dept), count(DISTINCT hired), sum(DISTINCT boss) FROM emp

SELECT dept, active, count(*), grouping(dept, active) FROM emp GROUP BY ROLLUP (dept, active)

SELECT dept, active, sum(salary) FROM emp GROUP BY CUBE (dept, active)

SELECT dept, boss, count(*) FROM emp GROUP BY GROUPING SETS ((dept), (boss), ())

SELECT dept, sum(salary) FILTER (WHERE salary > 75), count(*) FILTER (WHERE boss IS NULL) FROM emp GROUP BY dept

SELECT string_agg(name, ', ' ORDER BY name DESC) FROM emp

SELECT dept, array_agg(id ORDER BY id DESC) FROM emp GROUP BY dept

SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY id) FROM emp

SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY name) FROM emp

SELECT bool_and(active), bool_or(active), every(id > 0) FROM emp

SELECT variance(id), stddev(salary), var_pop(id) FROM emp

SELECT name FROM emp WHERE dept IN (SELECT id FROM dept WHERE budget > 100)

SELECT name FROM emp WHERE dept NOT IN (SELECT id FROM dept WHERE budget > 100)

SELECT name FROM emp WHERE dept NOT IN (SELECT boss FROM emp)

SELECT name FROM dept d WHERE EXISTS (SELECT 1 FROM emp e WHERE e.dept = d.id AND e.salary > 75)

SELECT name FROM dept d WHERE NOT EXISTS (SELECT 1 FROM emp e WHERE e.dept = d.id)

SELECT name, (SELECT max(salary) FROM emp e WHERE e.dept = d.id) FROM dept d

SELECT name, (SELECT count(*) FROM emp e WHERE e.dept = d.id) FROM dept d

SELECT name FROM emp e WHERE salary > (SELECT avg(salary) FROM emp x WHERE x.dept = e.dept)

SELECT name FROM emp WHERE salary > ALL (SELECT salary FROM emp WHERE dept = 2 AND salary IS NOT NULL)

SELECT name FROM emp WHERE salary = ANY (SELECT salary FROM emp WHERE dept = 1)

SELECT (SELECT name FROM emp)

SELECT (1, 2) IN (SELECT id, dept FROM emp), (2, 1) IN (SELECT id, dept FROM emp), (9, 9) IN (SELECT id, dept FROM emp)

SELECT ARRAY(SELECT id FROM emp ORDER BY id DESC)

SELECT d.name, x.name FROM dept d LEFT JOIN LATERAL (SELECT name FROM emp e WHERE e.dept = d.id ORDER BY salary DESC NULLS LAST LIMIT 1) x ON true

SELECT d.name, x.n FROM dept d, LATERAL (SELECT count(*) AS n FROM emp e WHERE e.dept = d.id) x WHERE x.n > 0

SELECT d.id, g FROM dept d, generate_series(1, d.id) g

SELECT * FROM generate_series(5, 1, -2)

SELECT * FROM ROWS FROM (unnest(ARRAY[1, 2, 3]), unnest(ARRAY['a', 'b'])) WITH ORDINALITY AS t (x, y, n)

SELECT DISTINCT dept FROM emp

SELECT DISTINCT ON (dept) dept, name FROM emp ORDER BY dept, salary DESC NULLS LAST

SELECT name FROM emp ORDER BY salary DESC NULLS LAST, name LIMIT 2 OFFSET 1

SELECT name, salary FROM emp ORDER BY salary

SELECT name, salary FROM emp ORDER BY salary DESC

SELECT name FROM emp ORDER BY length(name), name FETCH FIRST 3 ROWS ONLY

SELECT hired FROM emp ORDER BY hired FETCH FIRST 3 ROWS WITH TIES

SELECT id FROM emp LIMIT 0

SELECT id FROM emp ORDER BY id LIMIT NULL OFFSET 4

SELECT dept FROM emp UNION SELECT id FROM dept

SELECT dept FROM emp UNION ALL SELECT id FROM dept

SELECT dept FROM emp INTERSECT SELECT id FROM dept

SELECT dept FROM emp INTERSECT ALL SELECT boss FROM emp

SELECT id FROM dept EXCEPT SELECT dept FROM emp

SELECT dept FROM emp EXCEPT ALL SELECT boss FROM emp

SELECT 1 UNION SELECT 2.5 ORDER BY 1 DESC

VALUES (1, 'a'), (2, NULL) ORDER BY 1 DESC

WITH a AS (SELECT * FROM emp WHERE salary > 75), b AS (SELECT dept, count(*) AS n FROM a GROUP BY dept) SELECT * FROM b JOIN a USING (dept)

WITH RECURSIVE t (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 10) SELECT sum(n), count(*) FROM t

WITH RECURSIVE chain AS (SELECT id, boss, 0 AS depth FROM emp WHERE boss IS NULL UNION ALL SELECT e.id, e.boss, c.depth + 1 FROM emp e JOIN chain c ON e.boss = c.id) SELECT * FROM chain

WITH RECURSIVE t AS (SELECT 1 AS n UNION SELECT (n * 2) % 10 FROM t) SELECT * FROM t

SELECT id, row_number() OVER (ORDER BY id DESC), rank() OVER (ORDER BY hired), dense_rank() OVER (ORDER BY hired) FROM emp

SELECT id, sum(id) OVER (PARTITION BY dept ORDER BY id), sum(id) OVER () FROM emp

SELECT id, lag(id) OVER w, lead(id, 2, -1) OVER w, first_value(name) OVER w, last_value(id) OVER w FROM emp WINDOW w AS (ORDER BY id)

SELECT id, ntile(3) OVER (ORDER BY id), percent_rank() OVER (ORDER BY dept), cume_dist() OVER (ORDER BY dept) FROM emp

SELECT id, avg(id) OVER (ORDER BY id ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM emp

SELECT id, count(*) OVER (ORDER BY dept RANGE BETWEEN 1 PRECEDING AND CURRENT ROW) FROM emp

SELECT id, count(*) OVER (ORDER BY hired RANGE BETWEEN interval '1 year' PRECEDING AND CURRENT ROW) FROM emp

SELECT id, array_agg(id) OVER (ORDER BY dept GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW EXCLUDE TIES) FROM emp

SELECT dept, sum(count(*)) OVER (ORDER BY dept) FROM emp GROUP BY dept

SELECT id, count(*) FILTER (WHERE active) OVER (ORDER BY id) FROM emp

SELECT CASE WHEN salary > 90 THEN 'high' WHEN salary > 50 THEN 'mid' ELSE 'low' END, count(*) FROM emp GROUP BY 1

SELECT coalesce(name, 'nobody'), nullif(dept, 1), greatest(id, dept), least(id, dept) FROM emp

SELECT name LIKE 'a%', name ILIKE 'A%', name SIMILAR TO '(a|b)%', name ~ '^[ab]' FROM emp

SELECT id BETWEEN 2 AND 4, id IN (1, NULL), id NOT IN (1, 2), dept IS DISTINCT FROM 1 FROM emp

SELECT hired + 1, hired + interval '1 month', hired - date '2020-01-01', extract(year FROM hired), date_trunc('month', hired) FROM emp

SELECT salary * 2, salary / 3, salary % 7, -salary, round(salary, 1), id / 2, id % 2, id * 1.5 FROM emp

SELECT 7 / 2, -7 / 2, 7 % -3, 7.0 / 2, 2 ^ 10, 1e10, 0.1 + 0.2, 5::float8 / 2

SELECT upper(name), length(name), substring(name FROM 2 FOR 1), name || '!', position('n' IN name), replace(name, 'n', 'm'), trim(both 'a' from name) FROM emp

SELECT '{"a": {"b": [1, 2]}}'::json -> 'a' ->> 'b'

SELECT 1 / 0

SELECT id / (id - 3) FROM emp

SELECT 2147483647 + 1

SELECT 'x'::int

SELECT nosuch FROM emp

SELECT * FROM nosuch

SELECT name FROM emp GROUP BY dept

SELECT sum(name) FROM emp

SELECT * FRM emp

INSERT INTO dept VALUES (1, 'again', 1)

INSERT INTO dept VALUES (9, 'dev', 1)

INSERT INTO dept VALUES (9, NULL, 1)

INSERT INTO emp (id, dept) VALUES (9, 99)

INSERT INTO emp (id, salary) VALUES (9, -1)

INSERT INTO emp (id, name) VALUES (9, 'a name that is much too long for it')

INSERT INTO dept VALUES (5, 'lab', 1.005) RETURNING *

INSERT INTO dept SELECT id + 100, name || '2', budget FROM dept WHERE id < 3 RETURNING id, name

INSERT INTO dept VALUES (5, 'lab', 2), (6, 'law', 3) ON CONFLICT DO NOTHING RETURNING id

INSERT INTO dept VALUES (5, 'lab5', 7), (7, 'pub', 3) ON CONFLICT (id) DO UPDATE SET name = excluded.name, budget = dept.budget + excluded.budget RETURNING *

INSERT INTO dept VALUES (8, 'pub', 9) ON CONFLICT (name) DO UPDATE SET budget = excluded.budget WHERE dept.budget < 5 RETURNING *

INSERT INTO dept VALUES (5, 'x', 1), (5, 'y', 2) ON CONFLICT (id) DO UPDATE SET name = excluded.name

UPDATE emp SET salary = salary * 1.1 WHERE dept = 1 RETURNING id, salary

UPDATE emp SET salary = salary + d.budget FROM dept d WHERE d.id = emp.dept AND d.budget < 600 RETURNING emp.id, emp.salary, d.name

UPDATE emp SET (name, active) = ('zoe', NOT active) WHERE id = 6 RETURNING name, active

UPDATE emp SET salary = (SELECT max(salary) FROM emp) WHERE id = 4 RETURNING salary

UPDATE emp SET salary = -5 WHERE id = 1

UPDATE emp SET id = 1 WHERE id = 2

UPDATE dept SET id = 1000 WHERE id = 1

DELETE FROM emp USING dept d WHERE d.id = emp.dept AND d.name = 'hr' RETURNING emp.id, d.name

DELETE FROM dept WHERE id = 2 RETURNING name

SELECT id FROM emp ORDER BY id

WITH gone AS (DELETE FROM emp WHERE id = 5 RETURNING *) SELECT gone.id, (SELECT count(*) FROM emp) FROM gone

SELECT count(*) FROM emp

WITH moved AS (INSERT INTO dept VALUES (20, 'new', 1) RETURNING id) INSERT INTO emp (id, dept) SELECT id + 1, id FROM moved RETURNING id, dept

SELECT * FROM dept ORDER BY id

CREATE TABLE auto (id serial PRIMARY KEY, v int GENERATED ALWAYS AS IDENTITY, w int, twice int GENERATED ALWAYS AS (w * 2) STORED, at text DEFAULT 'now')

INSERT INTO auto (w) VALUES (5), (6) RETURNING *

INSERT INTO auto (w, twice) VALUES (5, 1)

INSERT INTO auto DEFAULT VALUES RETURNING id, w, twice

ALTER TABLE auto ADD COLUMN extra int DEFAULT 7

SELECT id, extra FROM auto ORDER BY id

ALTER TABLE auto DROP COLUMN at

SELECT * FROM auto ORDER BY id

INSERT INTO auto (w, extra) VALUES (9, NULL) RETURNING *

CREATE TABLE plain (a int, b text)

INSERT INTO plain VALUES (1, 'x'), (1, 'x'), (NULL, 'y')

SELECT * FROM plain

UPDATE plain SET b = 'z' WHERE a = 1

DELETE FROM plain WHERE a IS NULL

SELECT * FROM plain

CREATE INDEX plain_b ON plain (b)

CREATE UNIQUE INDEX plain_a ON plain (a)

SELECT a FROM plain WHERE b = 'z'

CREATE UNIQUE INDEX auto_w ON auto ((w + 1)) WHERE w IS NOT NULL

INSERT INTO auto (w) VALUES (5)

SELECT w FROM auto WHERE w + 1 = 6

CREATE VIEW rich AS SELECT name, salary FROM emp WHERE salary > 100

SELECT * FROM rich

DROP VIEW rich

TRUNCATE plain

SELECT count(*) FROM plain

CREATE TABLE copy AS SELECT id, name FROM dept WHERE id < 6

SELECT * FROM copy

DROP TABLE copy

DROP TABLE dept

DROP TABLE emp, dept

SELECT 1 FROM emp
