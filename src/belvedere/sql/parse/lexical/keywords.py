"""Which words may be names. PostgreSQL's categories, from its keyword list.

- `RESERVED`: never a name without quotes.
- `FUNCTION_OR_TYPE`: may name a function or a type, not a column or table.
- `COLUMN_ONLY`: may name a column or table, not a function or type.
- `NEEDS_AS`: may be a column label only after AS.
"""

from __future__ import annotations

RESERVED = frozenset(
    """
    all analyse analyze and any array as asc asymmetric both case cast check collate column
    constraint create current_catalog current_date current_role current_time current_timestamp
    current_user default deferrable desc distinct do else end except false fetch for foreign from
    grant group having in initially intersect into lateral leading limit localtime localtimestamp
    not null offset on only or order placing primary references returning select session_user some
    symmetric system_user table then to trailing true union unique user using variadic when where
    window with
    """.split()
)

FUNCTION_OR_TYPE = frozenset(
    """
    authorization binary collation concurrently cross current_schema freeze full ilike inner is
    isnull join left like natural notnull outer overlaps right similar tablesample verbose
    """.split()
)

COLUMN_ONLY = frozenset(
    """
    between bigint bit boolean char character coalesce dec decimal exists extract float greatest
    grouping inout int integer interval json json_array json_arrayagg json_exists json_object
    json_objectagg json_query json_scalar json_serialize json_table json_value least merge_action
    national nchar none normalize nullif numeric out overlay position precision real row setof
    smallint substring time timestamp treat trim values varchar xmlattributes xmlconcat xmlelement
    xmlexists xmlforest xmlnamespaces xmlparse xmlpi xmlroot xmlserialize xmltable
    """.split()
)

NEEDS_AS = frozenset(
    """
    array as char character create day except fetch filter for from grant group having hour
    intersect into isnull limit minute month notnull offset on order over overlaps precision
    returning second to union varying where window with within without year
    """.split()
)

NOT_COLUMN = RESERVED | FUNCTION_OR_TYPE
NOT_FUNCTION = RESERVED | COLUMN_ONLY
