"""Shapes of views beyond single blocks: long joins, expressions over aggregates, ordered
aggregates, sub-queries among the columns, LATERAL, WITH, towers and diamonds of views.

Each is `shape(generator) -> (query, text with earlier views written out)`; sums of
floats are left to `definitions`.
"""

from __future__ import annotations

from tests.properties.views.generate.definitions import (
    INTEGERS,
    NUMBERS,
    Generator,
    Query,
    Source,
    arrays,
)
from tests.properties.views.generate.schemas import Column

Made = tuple[Query, str]


def _made(head: str, source: Source, tail: tuple[str, str], columns: list[Column]) -> Made:
    query = Query(f"{head} FROM {source.text}{tail[0]}", tuple(columns), source.weight)
    return query, f"{head} FROM {source.expanded}{tail[1]}"


def _listed(items: list[tuple[str, str]]) -> tuple[str, list[Column]]:
    """A SELECT list of (text, type), and its columns."""
    text = ", ".join(f"{text} AS x{number}" for number, (text, _) in enumerate(items))
    return text, [Column(f"x{number}", type_) for number, (_, type_) in enumerate(items)]


def _number(generator: Generator, source: Source) -> Column:
    """A column of exact numbers, as numeric, so that nothing overflows."""
    numbers = [c for c in source.columns if c.type in NUMBERS]
    return generator.rng.choice(numbers)


def _has_number(source: Source) -> bool:
    return any(c.type in NUMBERS for c in source.columns)


def _source(generator: Generator) -> Source:
    """A source that has a column of exact numbers; every table has one."""
    while True:
        source = generator.source()
        if _has_number(source):
            return source


# -- joins -----------------------------------------------------------------------------------------


def long_join(generator: Generator) -> Made:
    """Five or six tables in a chain of keys, some of them twice."""
    rng = generator.rng
    names = [generator.alias() for _ in range(rng.choice((5, 5, 6)))]
    tables = [rng.choice(generator.tables) for _ in names]
    text = f"{tables[0].name} {names[0]}"
    for number in range(1, len(names)):
        kind = rng.choice(("", "", "", "LEFT ", "RIGHT ", "FULL "))
        earlier = names[number - 1] if kind in ("RIGHT ", "FULL ") else rng.choice(names[:number])
        text += f" {kind}JOIN {tables[number].name} {names[number]}"
        text += f" ON {names[number]}.id = {earlier}.{rng.choice(('j', 'j', 'id'))}"
    columns = [
        Column(f"{name}.{c.name}", c.type)
        for name, table in zip(names, tables, strict=True)
        for c in table.columns
    ]
    source = Source(text, text, tuple(columns), 4)
    chosen = rng.sample(columns, rng.randrange(2, 5))
    if rng.random() < 0.4:
        listed, made = _listed([(chosen[0].name, chosen[0].type), ("count(*)", "bigint")])
        return _made(f"SELECT {listed}", source, (f" GROUP BY {chosen[0].name}",) * 2, made)
    listed, made = _listed([(c.name, c.type) for c in chosen])
    return _made(f"SELECT {listed}", source, generator.where(source), made)


def using(generator: Generator) -> Made:
    """USING and NATURAL-like joins: the column is that of either side."""
    rng = generator.rng
    a, b = rng.choice(generator.tables), rng.choice(generator.tables)
    one, two = generator.alias(), generator.alias()
    kind = rng.choice(("", "LEFT ", "RIGHT ", "FULL "))
    text = f"{a.name} {one} {kind}JOIN {b.name} {two} USING (j)"
    widest = max((table.columns[1].type for table in (a, b)), key=INTEGERS.index)
    source = Source(text, text, (Column("j", widest),), 2)
    if rng.random() < 0.5:
        listed, made = _listed([("j", widest), (f"count({two}.id)", "bigint")])
        return _made(f"SELECT {listed}", source, (" GROUP BY j",) * 2, made)
    listed, made = _listed([("j", widest), (f"{one}.id", "int"), (f"{two}.id", "int")])
    return _made(f"SELECT {listed}", source, ("", ""), made)


def lateral(generator: Generator) -> Made:
    """For every row the first, or the count, of its partners."""
    rng = generator.rng
    a, b = rng.choice(generator.tables), rng.choice(generator.tables)
    one, two, inner = generator.alias(), generator.alias(), generator.alias()
    of = f"FROM {b.name} {inner} WHERE {inner}.j = {one}.j"
    wanted = rng.choice(
        (
            f"SELECT {inner}.id AS y {of} ORDER BY 1 DESC LIMIT {rng.choice((1, 2))}",
            f"SELECT count(*) AS y {of}",
            f"SELECT max({inner}.id) AS y {of} GROUP BY {inner}.g",
        )
    )
    kind = rng.choice(("CROSS JOIN LATERAL ({}) {}", "LEFT JOIN LATERAL ({}) {} ON true"))
    text = f"{a.name} {one} {kind.format(wanted, two)}"
    source = Source(text, text, (Column(f"{one}.id", "int"),), 2)
    type_ = "bigint" if "count" in wanted else "int"
    listed, made = _listed([(f"{one}.id", "int"), (f"{one}.g", "text"), (f"{two}.y", type_)])
    made[1] = Column("x1", a.columns[2].type)
    return _made(f"SELECT {listed}", source, ("", ""), made)


def with_values(generator: Generator) -> Made:
    """Rows joined with a few that are in the text."""
    rng, source = generator.rng, _source(generator)
    number, name = _number(generator, source), generator.alias()
    listed, made = _listed([(number.name, number.type), (f"{name}.w", "text")])
    kind = rng.choice(("JOIN", "LEFT JOIN"))
    values = f" {kind} (VALUES (1, 'one'), (2, 'two'), (2, 'zwei'), (NULL, 'none')) {name} (k, w)"
    joined = f"{values} ON {name}.k = {number.name}"
    return _made(f"SELECT {listed}", source, (joined, joined), made)


# -- aggregates ------------------------------------------------------------------------------------


def over_aggregates(generator: Generator) -> Made:
    """Expressions over aggregates, and HAVING of more than counts."""
    rng, source = generator.rng, _source(generator)
    x, keys = _number(generator, source), generator.keys(source)[:2]
    n = f"{x.name}::numeric"
    items = [(text, c.type) for text, c in keys]
    items += rng.sample(
        [
            (f"max({n}) - min({n})", "numeric"),
            (f"sum({n}) + count(*)", "numeric"),
            (f"coalesce(sum({n}), 0) * 2", "numeric"),
            (f"round(avg({n}), 3)", "numeric"),
            ("CASE WHEN count(*) > 2 THEN 'many' ELSE 'few' END", "text"),
            (f"count(*) FILTER (WHERE {x.name} IS NULL) > 0", "boolean"),
            (f"sum({n}) / nullif(count(DISTINCT {x.name}), 0)", "numeric"),
        ],
        2,
    )
    having = rng.choice(
        (
            "",
            f" HAVING sum({n}) > 1",
            f" HAVING max({n}) <> min({n})",
            f" HAVING avg({n}) IS NULL OR count(*) > 1",
            f" HAVING count(DISTINCT {x.name}) > 1 AND sum({n}) IS NOT NULL",
        )
    )
    group = f" GROUP BY {', '.join(text for text, _ in keys)}" if keys else ""
    where, listed_made = generator.where(source, 0.3), _listed(items)
    tail = f"{group}{having}"
    return _made(
        f"SELECT {listed_made[0]}", source, (where[0] + tail, where[1] + tail), listed_made[1]
    )


def grouping_marks(generator: Generator) -> Made:
    rng, source = generator.rng, _source(generator)
    count = min(rng.choice((2, 2, 3)), len(source.columns))
    keys = rng.sample(source.columns, count)
    names = ", ".join(c.name for c in keys)
    items = [(c.name, c.type) for c in keys]
    items += [(f"grouping({names})", "int"), ("count(*)", "bigint")]
    if rng.random() < 0.5:
        items.append((f"max({_number(generator, source).name}::numeric)", "numeric"))
    sets = rng.choice(
        (
            f"ROLLUP ({names})",
            f"CUBE ({names})",
            f"GROUPING SETS (({names}), ({keys[0].name}), ())",
            f"{keys[0].name}, ROLLUP ({', '.join(c.name for c in keys[1:])})",
        )
    )
    listed, made = _listed(items)
    return _made(f"SELECT {listed}", source, (f" GROUP BY {sets}",) * 2, made)


def ordered(generator: Generator) -> Made:
    """Aggregates that need their group's values in order."""
    rng = generator.rng
    source = generator.one()
    if not _has_number(source):
        table, alias = rng.choice(generator.tables), generator.alias()
        columns = tuple(Column(f"{alias}.{c.name}", c.type) for c in table.columns)
        source = Source(f"{table.name} {alias}", f"{table.name} {alias}", columns, 1)
    x, key = _number(generator, source), rng.choice(source.columns)
    # A number of small range, so that interpolation is exact, and NaN is not in it.
    small = f"(CASE WHEN {x.name} BETWEEN -100 AND 100 THEN {x.name} END)"
    calls = [
        (f"percentile_disc(0.5) WITHIN GROUP (ORDER BY {x.name})", x.type, "plain"),
        (f"percentile_cont(0.25) WITHIN GROUP (ORDER BY {small}::double precision)", "", "plain"),
        (f"mode() WITHIN GROUP (ORDER BY {x.name})", x.type, "plain"),
        (f"string_agg({small}::int::text, ',' ORDER BY {small}::int DESC)", "text", "plain"),
        (f"array_length(array_agg(DISTINCT {small}::int), 1)", "int", "plain"),
        (f"bool_and({x.name} > 0)", "boolean", "plain"),
        (f"stddev_samp({small}::int)", "numeric", "plain"),
        (f"max({x.name}) FILTER (WHERE {generator.condition(source.columns)})", x.type, "plain"),
    ]
    chosen = rng.sample(calls, 2)
    listed, made = _listed(
        [(key.name, key.type), *((text, type_ or "double precision") for text, type_, _ in chosen)]
    )
    made[1:] = [Column(c.name, c.type, kind) for c, (_, _, kind) in zip(made[1:], chosen)]
    where, tail = generator.where(source, 0.3), f" GROUP BY {key.name}"
    return _made(f"SELECT {listed}", source, (where[0] + tail, where[1] + tail), made)


# -- sub-queries -----------------------------------------------------------------------------------


def among_columns(generator: Generator) -> Made:
    """Sub-queries among the columns, correlated and not."""
    rng, source = generator.rng, generator.one()
    table, inner = rng.choice(generator.tables), generator.alias()
    pairs = [c for c in source.columns if c.type in NUMBERS]
    own = rng.choice(source.columns)
    items = [(own.name, own.type)]
    if pairs:
        of = f"FROM {table.name} {inner} WHERE {inner}.j = {rng.choice(pairs).name}"
        more = f"{inner}.id < {rng.randrange(2, 9)}"
        items += rng.sample(
            [
                (f"(SELECT count(*) {of})", "bigint"),
                (f"(SELECT max({inner}.id) {of} AND {more})", "int"),
                (f"EXISTS (SELECT 1 {of} AND {more})", "boolean"),
                (f"NOT EXISTS (SELECT 1 {of})", "boolean"),
                (f"coalesce((SELECT sum({inner}.id) {of}), -1)", "bigint"),
            ],
            2,
        )
    other = generator.alias()
    items.append((f"(SELECT min({other}.id) FROM {table.name} {other})", "int"))
    listed, made = _listed(items)
    return _made(f"SELECT {listed}", source, generator.where(source, 0.3), made)


def quantified(generator: Generator) -> Made:
    """ANY and ALL, rows in sub-queries, NOT IN of a nullable column."""
    rng, source = generator.rng, _source(generator)
    table, inner = rng.choice(generator.tables), generator.alias()
    x, kept = _number(generator, source), rng.sample(source.columns, 1)[0]
    rows = f"FROM {table.name} {inner}"
    some = f" WHERE {inner}.id > {rng.randrange(8)}" if rng.random() < 0.5 else ""
    condition = rng.choice(
        (
            f"{x.name} = ANY (SELECT {inner}.j {rows}{some})",
            f"{x.name} <> ALL (SELECT {inner}.j {rows}{some})",
            f"{x.name} >= ALL (SELECT {inner}.j {rows}{some})",
            f"{x.name} < ANY (SELECT {inner}.id {rows}{some})",
            f"({x.name}, {x.name}) IN (SELECT {inner}.j, {inner}.id {rows}{some})",
            f"{x.name} NOT IN (SELECT {inner}.j {rows}{some})",
            f"NOT ({x.name} IN (SELECT {inner}.j {rows}{some}))",
        )
    )
    if source.weight > 2:
        condition = generator.condition(source.columns)
    listed, made = _listed([(x.name, x.type), (kept.name, kept.type)])
    return _made(f"SELECT {listed}", source, (f" WHERE {condition}",) * 2, made)


# -- windows and sets ------------------------------------------------------------------------------


def windows(generator: Generator) -> Made:
    """Windows over joins, with frames of every kind."""
    rng, source = generator.rng, _source(generator)
    x, part = _number(generator, source), rng.choice(source.columns)
    n = f"{x.name}::numeric"
    order = ", ".join(rng.sample([c.name for c in source.columns], len(source.columns)))
    by, whole = f"PARTITION BY {part.name}", f"PARTITION BY {part.name} ORDER BY {order}"
    calls = [
        (f"sum({n}) OVER ({by} ORDER BY {x.name})", "numeric"),
        (f"count(*) OVER ({by} ORDER BY {x.name} RANGE UNBOUNDED PRECEDING)", "bigint"),
        (f"max({n}) OVER ({whole} ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING)", "numeric"),
        (f"min({n}) OVER ({by} ORDER BY {x.name} GROUPS 1 PRECEDING)", "numeric"),
        (f"last_value({n}) OVER ({whole} ROWS BETWEEN CURRENT ROW AND 2 FOLLOWING)", "numeric"),
        (f"nth_value({n}, 2) OVER ({whole})", "numeric"),
        (f"percent_rank() OVER ({by} ORDER BY {x.name})", "double precision"),
        (f"cume_dist() OVER ({by} ORDER BY {x.name} DESC)", "double precision"),
        ("count(*) OVER ()", "bigint"),
    ]
    listed, made = _listed([(part.name, part.type), (x.name, x.type), *rng.sample(calls, 2)])
    return _made(f"SELECT {listed}", source, generator.where(source, 0.3), made)


def three_sets(generator: Generator) -> Made:
    """Set operations of three, in brackets."""
    rng = generator.rng
    kinds = ("UNION", "UNION ALL", "EXCEPT", "EXCEPT ALL", "INTERSECT", "INTERSECT ALL")
    parts = []
    for _ in range(3):
        table, alias = rng.choice(generator.tables), generator.alias()
        columns = [Column(f"{alias}.{c.name}", c.type) for c in table.columns]
        where = f" WHERE {generator.condition(columns)}" if rng.random() < 0.6 else ""
        names = rng.choice((("id", "j"), ("j", "j"), ("j", "id")))
        listed = ", ".join(f"{alias}.{name}::bigint AS x{n}" for n, name in enumerate(names))
        parts.append(f"SELECT {listed} FROM {table.name} {alias}{where}")
    first, second = rng.choice(kinds), rng.choice(kinds)
    text = f"({parts[0]} {first} {parts[1]}) {second} {parts[2]}"
    if rng.random() < 0.5:
        text = f"{parts[0]} {first} ({parts[1]} {second} {parts[2]})"
    columns = (Column("x0", "bigint"), Column("x1", "bigint"))
    return Query(text, columns, 1), text


# -- WITH, towers and diamonds ---------------------------------------------------------------------


def twice(generator: Generator) -> Made:
    """One WITH query read twice: a diamond inside a view."""
    rng, source = generator.rng, generator.one()
    key, name = rng.choice(source.columns), generator.alias()
    inner = f"SELECT {key.name} AS k, count(*) AS n FROM {{}} GROUP BY {key.name}"
    kind = rng.choice(("JOIN", "LEFT JOIN"))
    tail = f"SELECT a.k AS x0, a.n AS x1, b.n AS x2 FROM {name} a {kind} {name} b"
    tail += rng.choice((" ON b.k = a.k", " ON b.n = a.n", " ON b.n = a.n + 1"))
    texts = [
        f"WITH {name} AS ({inner.format(one)}) {tail}" for one in (source.text, source.expanded)
    ]
    columns = (Column("x0", key.type), Column("x1", "bigint"), Column("x2", "bigint"))
    return Query(texts[0], columns, source.weight), texts[1]


def on_last(generator: Generator) -> Made:
    """On the view made last: towers as high as there are views."""
    rng = generator.rng
    views = [v for v in generator.views if any(c.kind == "plain" for c in v.columns)]
    if not views:
        return over_aggregates(generator)
    view, alias = views[-1], generator.alias()
    columns = tuple(Column(f"{alias}.{c.name}", c.type) for c in view.columns if c.kind == "plain")
    expanded = f"({arrays(view.query)}) {alias}"
    source = Source(f"{view.name} {alias}", expanded, columns, view.weight)
    kept = rng.sample(columns, min(len(columns), rng.randrange(1, 4)))
    items = [(c.name, c.type) for c in kept]
    where = generator.where(source, 0.3)
    match rng.randrange(4):
        case 0:
            listed, made = _listed(items)
            return _made(f"SELECT {listed}", source, where, made)
        case 1:
            listed, made = _listed(items)
            return _made(f"SELECT DISTINCT {listed}", source, where, made)
        case _:
            listed, made = _listed([*items, ("count(*)", "bigint")])
            group = f" GROUP BY {', '.join(c.name for c in kept)}"
            return _made(f"SELECT {listed}", source, (where[0] + group, where[1] + group), made)


def diamond(generator: Generator) -> Made:
    """Two earlier views, or one twice, meet again by a column of one type."""
    rng = generator.rng
    views = [v for v in generator.views if any(c.kind == "plain" for c in v.columns)]
    chosen = [(rng.choice(views), rng.choice(views)) for _ in range(8)] if views else []
    for left, right in chosen:
        pairs = [
            (a, b)
            for a in left.columns
            for b in right.columns
            if a.type == b.type and a.kind == b.kind == "plain"
        ]
        if not pairs or left.weight + right.weight > 3:
            continue
        (a, b), one, two = rng.choice(pairs), generator.alias(), generator.alias()
        on = f"ON {one}.{a.name} = {two}.{b.name}"
        kind = rng.choice(("JOIN", "LEFT JOIN", "FULL JOIN"))
        source = Source(
            f"{left.name} {one} {kind} {right.name} {two} {on}",
            f"({arrays(left.query)}) {one} {kind} ({arrays(right.query)}) {two} {on}",
            (),
            left.weight + right.weight,
        )
        listed, made = _listed([(f"{one}.{a.name}", a.type), (f"{two}.{b.name}", b.type)])
        return _made(f"SELECT {listed}", source, ("", ""), made)
    return on_last(generator)


MORE = (
    long_join,
    using,
    lateral,
    with_values,
    over_aggregates,
    grouping_marks,
    ordered,
    among_columns,
    quantified,
    windows,
    three_sets,
    twice,
    on_last,
    diamond,
)
TOWERS = (on_last, on_last, on_last, diamond)
