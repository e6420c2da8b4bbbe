"""Filters of scans in HBase's filter language, for region servers to evaluate.

    SingleColumnValueFilter('c', 'c3', <, 'binary:...', true, true)

A comparison looks at the newest version of the column only; the flag before it says whether a row
without the column is left out. Quotes in a value are doubled; any other byte stands for itself.
"""

from __future__ import annotations

from belvedere.kv.cell_filter import AllOf, CellComparison, CellFilter

_OPERATORS = {"=": b"=", "<>": b"!=", "<": b"<", "<=": b"<=", ">": b">", ">=": b">="}


def filter_text(wanted: CellFilter, family: bytes | None) -> bytes:
    """Without a family, columns are `family:qualifier`."""
    if isinstance(wanted, CellComparison):
        return _comparison_text(wanted, family)
    joint = b" AND " if isinstance(wanted, AllOf) else b" OR "
    return b"(" + joint.join(filter_text(each, family) for each in wanted.filters) + b")"


def _comparison_text(wanted: CellComparison, family: bytes | None) -> bytes:
    qualifier = wanted.column
    if family is None:
        family, _, qualifier = wanted.column.partition(b":")
    arguments = (
        _quote(family),
        _quote(qualifier),
        _OPERATORS[wanted.operator],
        _quote(b"binary:" + wanted.value),
        b"false" if wanted.passes_missing else b"true",
        b"true",
    )
    return b"SingleColumnValueFilter(" + b", ".join(arguments) + b")"


def _quote(value: bytes) -> bytes:
    return b"'" + value.replace(b"'", b"''") + b"'"
