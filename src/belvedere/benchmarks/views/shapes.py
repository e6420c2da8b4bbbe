"""The view shapes of `belvedere bench growth`: one of every kind of operator, with a change.

Tables, all with `rows / group_rows` groups:

    t (id, g, v, w)   the rows of the groups; v is unique in its group, and the group of a row is
                      id % groups
    p (id, r, n)      the parents of the groups, one each; r has ten values
    u (id, g, v)      one row of each group

A change is a statement with parameters: `:id` (a row in the middle of its group by v), `:g` (its
group), `:step` (so much that it passes its neighbour in the order of v, or goes back) and `:turn`
(another number each time).
"""

from __future__ import annotations

from typing import NamedTuple

ROW_CHANGE = "UPDATE t SET v = v + :step WHERE id = :id"
"""Moves a row by one place in its group, and back with the next turn."""

PARENT_CHANGE = "UPDATE p SET r = (r + 1) % 10 WHERE id = :g"
NAME_CHANGE = "UPDATE p SET n = 'n' || :turn::text WHERE id = :g"


class ViewShape(NamedTuple):
    """A view, the change that is measured, and why its cost grows with the group where it does:
    `answer` says that the answer itself changes in as many rows."""

    name: str
    definition: str
    change: str = ROW_CHANGE
    answer: str = ""


_PARENT = "SELECT t.id, p.n FROM t JOIN p ON p.id = t.g"
_EVERY_ROW = "every row of the group changes"
_LATER_ROWS = "the rows after it change"

SHAPES: tuple[ViewShape, ...] = (
    ViewShape("filter", "SELECT id, v FROM t WHERE v > 2"),
    ViewShape("projection", "SELECT id, v * 2 AS twice FROM t"),
    ViewShape("UNION ALL", "SELECT id, v FROM t UNION ALL SELECT id, v FROM u"),
    ViewShape("join, child changes", "SELECT t.id, t.v, p.n FROM t JOIN p ON p.id = t.g"),
    ViewShape("join, parent changes", _PARENT, NAME_CHANGE, _EVERY_ROW),
    ViewShape(
        "join of three",
        "SELECT t.id, t.v, p.n, u.v AS other FROM t JOIN p ON p.id = t.g JOIN u ON u.g = p.id",
    ),
    ViewShape("left join", "SELECT t.id, t.v, u.v AS other FROM t LEFT JOIN u ON u.g = t.g"),
    ViewShape(
        "left join, right changes",
        "SELECT p.id, u.v FROM p LEFT JOIN u ON u.g = p.id",
        "UPDATE u SET v = v + :step WHERE g = :g",
    ),
    ViewShape("full join", "SELECT t.id, t.v, u.v AS other FROM t FULL JOIN u ON u.id = t.id"),
    ViewShape("EXISTS", "SELECT id FROM p WHERE EXISTS (SELECT FROM t WHERE t.g = p.id)"),
    ViewShape(
        "EXISTS with a filter",
        "SELECT id FROM p WHERE EXISTS (SELECT FROM t WHERE t.g = p.id AND t.v > 4)",
    ),
    ViewShape("NOT EXISTS", "SELECT id FROM p WHERE NOT EXISTS (SELECT FROM t WHERE t.g = p.id)"),
    ViewShape("IN", "SELECT id, v FROM t WHERE g IN (SELECT g FROM u WHERE v > 0)"),
    ViewShape("sub-query", "SELECT id, (SELECT count(*) FROM t WHERE t.g = p.id) AS number FROM p"),
    ViewShape("count and sum", "SELECT g, count(*) AS number, sum(v) AS total FROM t GROUP BY g"),
    ViewShape(
        "avg",
        "SELECT g, avg(w) AS mean FROM t GROUP BY g",
        "UPDATE t SET w = w + 1 WHERE id = :id",
    ),
    ViewShape("HAVING", "SELECT g, sum(v) AS total FROM t GROUP BY g HAVING sum(v) > 1000"),
    ViewShape("max", "SELECT g, max(v) AS largest FROM t GROUP BY g"),
    ViewShape("count(DISTINCT)", "SELECT g, count(DISTINCT v) AS number FROM t GROUP BY g"),
    ViewShape(
        "join + aggregate, child changes",
        "SELECT p.r, sum(t.v) AS total FROM t JOIN p ON p.id = t.g GROUP BY p.r",
    ),
    ViewShape(
        "join + aggregate, parent changes",
        "SELECT p.r, sum(t.v) AS total FROM t JOIN p ON p.id = t.g GROUP BY p.r",
        PARENT_CHANGE,
    ),
    ViewShape(
        "GROUPING SETS",
        "SELECT g, v % 3 AS third, count(*) AS number FROM t GROUP BY GROUPING SETS ((g), (v % 3))",
    ),
    ViewShape("DISTINCT", "SELECT DISTINCT g, v % 7 AS day FROM t"),
    ViewShape("DISTINCT ON", "SELECT DISTINCT ON (g) g, v, id FROM t ORDER BY g, v DESC"),
    ViewShape("UNION", "SELECT g, v FROM t UNION SELECT g, v FROM u"),
    ViewShape("INTERSECT", "SELECT g, v FROM t INTERSECT SELECT g, v FROM u"),
    ViewShape("EXCEPT", "SELECT g, v FROM t EXCEPT SELECT g, v FROM u"),
    ViewShape("LIMIT", "SELECT id, v FROM t ORDER BY v DESC, id LIMIT 10"),
    ViewShape(
        "row_number <= 3",
        "SELECT id, g, place FROM (SELECT id, g, row_number() OVER (PARTITION BY g ORDER BY v DESC)"
        " AS place FROM t) AS ranked WHERE place <= 3",
    ),
    ViewShape("lag", "SELECT id, v - lag(v) OVER (PARTITION BY g ORDER BY v) AS step FROM t"),
    ViewShape("lead", "SELECT id, lead(id, 2) OVER (PARTITION BY g ORDER BY v) AS after FROM t"),
    ViewShape(
        "first_value", "SELECT id, first_value(id) OVER (PARTITION BY g ORDER BY v) AS first FROM t"
    ),
    ViewShape(
        "bounded frame",
        "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY v ROWS BETWEEN 2 PRECEDING AND"
        " 2 FOLLOWING) AS near FROM t",
    ),
    ViewShape(
        "row_number",
        "SELECT id, row_number() OVER (PARTITION BY g ORDER BY v) AS place FROM t",
        "UPDATE t SET v = -v WHERE id = :id",
        _LATER_ROWS,
    ),
    ViewShape(
        "running sum",
        "SELECT id, sum(v) OVER (PARTITION BY g ORDER BY v) AS total FROM t",
        answer=_LATER_ROWS,
    ),
    ViewShape(
        "string_agg",
        "SELECT g, string_agg(w::text, ',' ORDER BY v) AS all_w FROM t GROUP BY g",
        answer="the text has every row of the group",
    ),
)
