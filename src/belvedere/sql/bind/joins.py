"""Column names after a join: those of both sides, or merged by USING."""

from __future__ import annotations

from belvedere.errors import InvalidInput
from belvedere.plan import expressions as e
from belvedere.plan.nodes import JoinKind
from belvedere.plan.transform import shift
from belvedere.sql.bind.binder import Binder
from belvedere.sql.bind.coerce import unify
from belvedere.sql.bind.scope import Relation, Source, Visible, near


def join_names(left: Relation, right: Relation) -> tuple[tuple[Source, ...], tuple[Visible, ...]]:
    sources, visible = right.shifted(len(left.node.fields))
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
    binder: Binder, kind: JoinKind, left: Relation, right: Relation, names: tuple[str, ...], at: int
) -> tuple[list[Pair], tuple[Visible, ...]]:
    """The pairs to compare, and the names after the join: merged columns first, each once."""
    width = len(left.node.fields)
    pairs: list[Pair] = []
    merged: list[Visible] = []
    for name in names:
        pair = (_one(left, name, at), shift(_one(right, name, at), width))
        pairs.append(pair)
        merged.append(Visible(name, _merged(binder, kind, pair, at)))
    rest_left = [one for one in left.visible if one.name not in names]
    rest_right = [
        Visible(one.name, shift(one.expression, width))
        for one in right.visible
        if one.name not in names
    ]
    return pairs, (*merged, *rest_left, *rest_right)


def _merged(binder: Binder, kind: JoinKind, pair: Pair, at: int) -> e.Expression:
    """The side that cannot be NULL for want of a match; of FULL the first that is not."""
    if kind is JoinKind.FULL:
        common, same = unify(binder, pair, "join/using", at)
        return e.Coalesce(same, common)
    if pair[0].type != pair[1].type:
        _, same = unify(binder, pair, "join/using", at)
        return same[1] if kind is JoinKind.RIGHT else same[0]
    return pair[1] if kind is JoinKind.RIGHT else pair[0]


def _one(relation: Relation, name: str, at: int) -> e.Expression:
    found = [one.expression for one in relation.visible if one.name == name]
    if not found:
        raise InvalidInput(
            "column specified in using clause does not exist",
            sqlstate="42703",
            position=at + 1,
            hint=near(name, (one.name for one in relation.visible)),
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
