"""Column names after a join: those of both sides, or merged by USING."""

from __future__ import annotations

from belvedere.errors import InvalidInput
from belvedere.plan import expressions as e
from belvedere.plan.nodes import JoinKind
from belvedere.plan.transform import shift_columns
from belvedere.sql.bind.binder import Binder
from belvedere.sql.bind.expressions.coerce import unify_types
from belvedere.sql.bind.scope import FromRelation, FromSource, VisibleColumn, suggest_names


def join_names(
    left: FromRelation, right: FromRelation
) -> tuple[tuple[FromSource, ...], tuple[VisibleColumn, ...]]:
    sources, visible = right.shift_names(len(left.node.fields))
    known = {(one.schema, one.alias) for one in left.sources if one.alias}
    for one in sources:
        # Two tables of the same name from different schemas may be joined.
        if (one.schema, one.alias) in known:
            raise InvalidInput(
                "table name specified more than once", sqlstate="42712", name=one.alias
            )
    return left.sources + sources, left.visible + visible


Pair = tuple[e.Expression, e.Expression]


def merge_using(
    binder: Binder,
    kind: JoinKind,
    left: FromRelation,
    right: FromRelation,
    names: tuple[str, ...],
    at: int,
) -> tuple[list[Pair], tuple[VisibleColumn, ...]]:
    """The pairs to compare, and the names after the join: merged columns first, each once."""
    width = len(left.node.fields)
    pairs: list[Pair] = []
    merged: list[VisibleColumn] = []
    for name in names:
        pair = (
            _find_using_column(left, name, at),
            shift_columns(_find_using_column(right, name, at), width),
        )
        pairs.append(pair)
        merged.append(VisibleColumn(name, _merge_columns(binder, kind, pair, at)))
    rest_left = [one for one in left.visible if one.name not in names]
    rest_right = [
        VisibleColumn(one.name, shift_columns(one.expression, width))
        for one in right.visible
        if one.name not in names
    ]
    return pairs, (*merged, *rest_left, *rest_right)


def _merge_columns(binder: Binder, kind: JoinKind, pair: Pair, at: int) -> e.Expression:
    """The side that is not NULL-extended by the join; for FULL the first value that is not NULL."""
    if kind is JoinKind.FULL:
        common, same = unify_types(binder, pair, "join/using", at)
        return e.Coalesce(same, common)
    if pair[0].type != pair[1].type:
        _, same = unify_types(binder, pair, "join/using", at)
        return same[1] if kind is JoinKind.RIGHT else same[0]
    return pair[1] if kind is JoinKind.RIGHT else pair[0]


def _find_using_column(relation: FromRelation, name: str, at: int) -> e.Expression:
    found = [one.expression for one in relation.visible if one.name == name]
    if not found:
        raise InvalidInput(
            "column specified in using clause does not exist",
            sqlstate="42703",
            position=at + 1,
            hint=suggest_names(name, (one.name for one in relation.visible)),
            column=name,
        )
    if len(found) > 1:
        raise InvalidInput(
            "common column name appears more than once",
            sqlstate="42702",
            position=at + 1,
            column=name,
        )
    return found[0]
