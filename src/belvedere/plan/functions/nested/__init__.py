"""Functions of arrays and JSON, and functions that return sets.

In reading order; an entry uses only those before it:

    arrays           array functions: building, searching, ANY and ALL, unnest
    generate_series  generate_series, generate_subscripts and _pg_expandarray
    json             JSON functions over JSON text: extraction, types, lengths, building
    json_records     json_each, json_object_agg, json_strip_nulls, paths, rows as JSON objects
"""
