-- cases 3/11, 3/24, 3/91: a conjunction under IS NOT UNKNOWN lost its parentheses in DuckDB's text
CREATE TABLE u (id integer PRIMARY KEY, a text, b integer);
INSERT INTO u VALUES (10, '', 2);
SELECT id FROM u WHERE ((id BETWEEN b AND b) IS NOT UNKNOWN);
SELECT id FROM u WHERE ((id > 1 OR b > 5) IS NOT TRUE);
SELECT id FROM u WHERE (NOT (id > 1 OR b > 5)) IS FALSE;
SELECT nullif((b BETWEEN id AND id), false) FROM u;
SELECT (id = b) <= (b BETWEEN id AND 3) FROM u;
