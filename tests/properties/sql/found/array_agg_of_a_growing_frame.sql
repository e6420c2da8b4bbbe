-- every row of a growing frame was given the same list
CREATE TABLE w (id integer PRIMARY KEY, x integer);
INSERT INTO w VALUES (1, 10), (2, 20), (3, NULL);
SELECT id, array_agg(x) OVER (ORDER BY id), array_agg(x) OVER (ORDER BY id ROWS 1 PRECEDING) FROM w;
