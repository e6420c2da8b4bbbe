"""Binds window functions: OVER clauses, named windows, frames."""

from __future__ import annotations

from dataclasses import replace

from msgspec import structs

from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.plan.functions.core.function import FunctionKind
from belvedere.plan.nodes import Frame, FrameBound, FrameMode, FrameSide
from belvedere.plan.transform import columns_of
from belvedere.sql.bind.binder import WINDOW, Env, SelectCalls, WindowUse
from belvedere.sql.bind.expressions.coerce import (
    coerce,
    default_to_text,
    require_boolean,
    resolve_call,
    specialize_function,
)
from belvedere.sql.bind.scope import suggest_names
from belvedere.sql.parse import tree as t
from belvedere.types import BIGINT, INTERVAL, Kind, SqlType


def bind_window(env: Env, tree: t.FunctionCall, name: str, kind: FunctionKind) -> e.Expression:
    """A call with OVER; it becomes a column of a row to come."""
    if env.found is None or not env.windows or env.inside:
        where = f"{env.inside} arguments" if env.inside else env.clause
        raise InvalidInput(
            f"window functions are not allowed in {where}",
            sqlstate="42P20" if env.inside != "aggregate" else "42803",
            position=tree.at + 1,
        )
    if kind not in (FunctionKind.AGGREGATE, FunctionKind.WINDOW):
        raise InvalidInput(
            "over is for window and aggregate functions only",
            sqlstate="42809",
            position=tree.at + 1,
        )
    _refuse_clauses(tree)
    inner = replace(env, inside="window", windows=False, sets=False)
    arguments = [env.binder.rules.expression(inner, one) for one in tree.arguments]
    found, given = resolve_call(env.binder, name, arguments, tree.at)
    condition = None
    if tree.filter is not None:
        if kind is FunctionKind.WINDOW:
            raise Unsupported("filter of a window function", position=tree.at + 1)
        bound = env.binder.rules.expression(inner, tree.filter)
        condition = require_boolean(env.binder, bound, "filter", tree.at)
    call = e.WindowCall(
        specialize_function(found, env.binder.zone), given, found.result_type, condition
    )
    use = _bind_window_use(inner, env.found, tree, call, name)
    if use not in env.found.windows:
        env.found.windows.append(use)
    return e.Column(WINDOW + env.found.windows.index(use), call.type, name)


def _refuse_clauses(tree: t.FunctionCall) -> None:
    for wrong, what in (
        (tree.distinct, "distinct of a window function"),
        (bool(tree.order_by), "order by of a window function's arguments"),
        (tree.within is not None, "ordered-set aggregate as a window function"),
    ):
        if wrong:
            raise Unsupported(what, position=tree.at + 1)


def _bind_window_use(
    env: Env, found: SelectCalls, tree: t.FunctionCall, call: e.WindowCall, name: str
) -> WindowUse:
    over = tree.over
    spec = _find_window(found, over, tree.at) if isinstance(over, str) else over
    assert spec is not None
    if not isinstance(over, str):
        spec = _refine_window(found, spec)
    bound = env.binder.rules.expression
    partition = tuple([default_to_text(env.binder, bound(env, one)) for one in spec.partition])
    order = tuple([_bind_sort_key(env, one) for one in spec.order])
    return WindowUse(call, partition, order, _bind_frame(env, spec, order), name)


def _bind_sort_key(env: Env, item: t.OrderItem) -> e.SortKey:
    expression = default_to_text(env.binder, env.binder.rules.expression(env, item.expression))
    first = item.descending if item.nulls_first is None else item.nulls_first
    return e.SortKey(expression, item.descending, first)


def _find_window(found: SelectCalls, name: str, at: int) -> t.WindowSpec:
    spec = found.specs.get(name)
    if spec is None:
        raise InvalidInput(
            "window does not exist",
            sqlstate="42704",
            position=at + 1,
            hint=suggest_names(name, found.specs),
            name=name,
        )
    return _refine_window(found, spec)


def _refine_window(found: SelectCalls, spec: t.WindowSpec) -> t.WindowSpec:
    """A window that starts from another takes its partition, and its order when it has one."""
    if spec.base is None:
        return spec
    base = _find_window(found, spec.base, spec.at)
    wrong = None
    if spec.partition:
        wrong = "cannot override partition by clause of window"
    elif spec.order and base.order:
        wrong = "cannot override order by clause of window"
    elif base.mode is not None:
        wrong = "cannot copy window because it has a frame clause"
    if wrong:
        raise InvalidInput(wrong, sqlstate="42P20", position=spec.at + 1, name=spec.base)
    order = spec.order or base.order
    return structs.replace(spec, base=None, partition=base.partition, order=order)


# -- frames ----------------------------------------------------------------------------------------

_RANK = {side: place for place, side in enumerate(FrameSide)}


def _bind_frame(env: Env, spec: t.WindowSpec, order: tuple[e.SortKey, ...]) -> Frame:
    if spec.mode is None or spec.start is None:
        return Frame()
    mode = FrameMode(spec.mode)
    start = _bind_frame_bound(env, mode, spec.start, order, spec.at)
    end = FrameBound(FrameSide.CURRENT_ROW)
    if spec.end is not None:
        end = _bind_frame_bound(env, mode, spec.end, order, spec.at)
    wrong = None
    if start.side is FrameSide.UNBOUNDED_FOLLOWING:
        wrong = "frame start cannot be unbounded following"
    elif end.side is FrameSide.UNBOUNDED_PRECEDING:
        wrong = "frame end cannot be unbounded preceding"
    elif _RANK[start.side] > _RANK[end.side]:
        wrong = "frame starts after its end"
    elif mode is FrameMode.GROUPS and not order:
        wrong = "groups mode requires an order by clause"
    if wrong:
        raise InvalidInput(wrong, sqlstate="42P20", position=spec.at + 1)
    return Frame(mode, start, end, spec.exclude)


def _bind_frame_bound(
    env: Env, mode: FrameMode, edge: t.FrameEdge, order: tuple[e.SortKey, ...], at: int
) -> FrameBound:
    side = FrameSide(edge.word)
    if edge.offset is None:
        return FrameBound(side)
    offset = env.binder.rules.expression(env, edge.offset)
    if columns_of(offset):
        raise InvalidInput(
            "argument of a frame must not contain variables", sqlstate="42P10", position=at + 1
        )
    return FrameBound(side, coerce(env.binder, offset, _offset_type(mode, order, at), at=at))


def _offset_type(mode: FrameMode, order: tuple[e.SortKey, ...], at: int) -> SqlType:
    if mode is not FrameMode.RANGE:
        return BIGINT
    if len(order) != 1:
        raise InvalidInput(
            "range with offset requires exactly one order by column",
            sqlstate="42P20",
            position=at + 1,
        )
    kind = order[0].expression.type.kind
    if kind in (Kind.DATE, Kind.TIME, Kind.TIMESTAMP, Kind.TIMESTAMPTZ, Kind.INTERVAL):
        return INTERVAL
    numbers = (Kind.SMALLINT, Kind.INTEGER, Kind.BIGINT, Kind.NUMERIC, Kind.REAL, Kind.DOUBLE)
    if kind in numbers:
        return SqlType(kind)
    raise Unsupported("range with offset over this type", position=at + 1, type=kind.value)
