"""Binds SELECT, clause by clause in the order of evaluation.

FROM, WHERE, GROUP BY and aggregates, HAVING, window functions, set-returning functions, the select
list, DISTINCT, ORDER BY. LIMIT and locks come with the query around it, which may also order by
expressions that are not selected: they travel as extra columns at the end of the row.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from belvedere.catalog.model import Table
from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.transform import columns_of, lift_expression, map_columns
from belvedere.sql.bind.binder import AGGREGATE, SET, WINDOW, Binder, Env, SelectCalls, WindowUse
from belvedere.sql.bind.expressions.calls import make_sort_key
from belvedere.sql.bind.expressions.coerce import default_to_text, require_boolean
from belvedere.sql.bind.queries.from_clause import bind_from_list
from belvedere.sql.bind.queries.grouping import GroupingKeys, GroupRowRewriter, bind_groups
from belvedere.sql.bind.queries.select_list import OutputColumn, expand_targets
from belvedere.sql.bind.scope import CteName, NameScope
from belvedere.sql.parse import tree as t
from belvedere.types import UNCOMPARED_KINDS


def bind_select(
    binder: Binder,
    tree: t.Select,
    parent: NameScope | None,
    ctes: dict[str, CteName],
    order_by: tuple[t.OrderItem, ...],
    locks: tuple[t.LockClause, ...],
    keep_unknown: bool,
) -> tuple[n.Node, int]:
    """The plan of one SELECT with its ORDER BY, and how many of its columns are shown."""
    relation = bind_from_list(binder, tree.sources, parent, ctes)
    scope = NameScope(relation, parent, ctes)
    node = relation.node
    if tree.where is not None:
        env = Env(binder, scope, "where")
        bound = binder.rules.expression(env, tree.where)
        node = n.Filter(node, require_boolean(binder, bound, "where", tree.where.at))
    found = scope.found = SelectCalls(specs=_collect_window_specs(tree))
    env = Env(binder, scope, "select", found, windows=True, sets=True)
    targets = expand_targets(env, tree.targets, keep_unknown)
    parts = _SelectBinder(binder, tree, scope, found, targets)
    parts.bind_clauses(order_by)
    node = parts.add_aggregate(node)
    node = parts.add_windows(node)
    node = parts.add_set_functions(node)
    return parts.project_output(node, locks), len(targets)


def _collect_window_specs(tree: t.Select) -> dict[str, t.WindowSpec]:
    specs: dict[str, t.WindowSpec] = {}
    for name, spec in tree.windows:
        if name in specs:
            raise InvalidInput(
                "window is already defined", sqlstate="42P20", position=spec.at + 1, name=name
            )
        specs[name] = spec
    return specs


class _SelectBinder:
    """The expressions of one SELECT, rewritten from the row of each plan node to the next."""

    def __init__(
        self,
        binder: Binder,
        tree: t.Select,
        scope: NameScope,
        found: SelectCalls,
        targets: list[OutputColumn],
    ) -> None:
        self.binder = binder
        self.tree = tree
        self.scope = scope
        self.found = found
        self.targets = targets
        self.keys: list[e.SortKey] = []
        self.on: list[e.Expression] = []
        self.having: e.Expression | None = None
        self.groups: GroupingKeys | None = None

    # -- binding --------------------------------------------------------------------------------

    def bind_clauses(self, order_by: tuple[t.OrderItem, ...]) -> None:
        tree = self.tree
        if tree.groups is not None:
            self.groups = bind_groups(tree.groups, tree.group_distinct, self.bind_group_expression)
        if tree.having is not None:
            env = Env(self.binder, self.scope, "having", self.found)
            bound = self.binder.rules.expression(env, tree.having)
            self.having = require_boolean(self.binder, bound, "having", tree.having.at)
        for item in order_by:
            expression = self.bind_output(item.expression, "order by")
            self.keys.append(make_sort_key(expression, item, item.expression.at))
        self.on = [self.bind_output(one, "distinct on") for one in tree.distinct_on]

    def bind_group_expression(self, tree: t.Expr) -> e.Expression:
        """An ordinal, an input column, an output name, or any other expression."""
        if isinstance(tree, t.Constant):
            return self.resolve_ordinal(tree, "group by")
        if isinstance(tree, t.Name) and len(tree.parts) == 1:
            known = any(one.name == tree.parts[0] for one in self.scope.relation.visible)
            if not known and (target := self.find_target(tree)) is not None:
                return self.check_group_target(target, tree.at)
        env = Env(self.binder, self.scope, "group by")
        return default_to_text(self.binder, self.binder.rules.expression(env, tree))

    def check_group_target(self, target: OutputColumn, at: int) -> e.Expression:
        for index in _collect_markers(target.expression):
            what = "window functions" if index >= WINDOW else "aggregate functions"
            state = "42P20" if index >= WINDOW else "42803"
            raise InvalidInput(
                f"{what} are not allowed in group by", sqlstate=state, position=at + 1
            )
        return target.expression

    def bind_output(self, tree: t.Expr, clause: str) -> e.Expression:
        """An ordinal, an output name, or an expression over the input row."""
        if isinstance(tree, t.Constant):
            return self.resolve_ordinal(tree, clause)
        if isinstance(tree, t.Name) and len(tree.parts) == 1:
            target = self.find_target(tree)
            if target is not None:
                return target.expression
        env = Env(self.binder, self.scope, clause, self.found, windows=True, sets=True)
        return default_to_text(self.binder, self.binder.rules.expression(env, tree))

    def find_target(self, tree: t.Name) -> OutputColumn | None:
        found = [one for one in self.targets if one.name == tree.parts[0]]
        if any(one.expression != found[0].expression for one in found[1:]):
            raise InvalidInput(
                "name is ambiguous", sqlstate="42702", position=tree.at + 1, name=tree.parts[0]
            )
        return found[0] if found else None

    def resolve_ordinal(self, tree: t.Constant, clause: str) -> e.Expression:
        if tree.kind != "integer":
            raise InvalidInput(
                f"non-integer constant in {clause}", sqlstate="42601", position=tree.at + 1
            )
        place = int(str(tree.value))
        if not 1 <= place <= len(self.targets):
            raise InvalidInput(
                f"{clause} position is not in select list", sqlstate="42P10", position=tree.at + 1
            )
        target = self.targets[place - 1]
        return (
            self.check_group_target(target, tree.at) if clause == "group by" else target.expression
        )

    # -- moving ---------------------------------------------------------------------------------

    def add_aggregate(self, node: n.Node) -> n.Node:
        if self.groups is None and not self.found.aggregates and self.having is None:
            if self.found.groupings:
                raise InvalidInput(
                    "arguments to grouping must be grouping expressions", sqlstate="42803"
                )
            return node
        groups = self.groups or GroupingKeys((), None)
        regroup = GroupRowRewriter(self.scope, groups, self.found, self.collect_read_columns())
        self.rewrite_expressions(regroup.rewrite_expression)
        self.found.windows = [_rewrite_window(one, regroup) for one in self.found.windows]
        self.found.sets = [
            one._replace(arguments=tuple(map(regroup.rewrite_expression, one.arguments)))
            for one in self.found.sets
        ]
        having = None if self.having is None else regroup.rewrite_expression(self.having)
        node = regroup.build_aggregate(node)
        return node if having is None else n.Filter(node, having)

    def collect_read_columns(self) -> set[int]:
        """The columns of the input row that are read outside of aggregates."""
        read = [one.expression for one in self.targets] + [one.expression for one in self.keys]
        read += self.on
        read += [] if self.having is None else [self.having]
        for use in self.found.windows:
            read += [*use.call.arguments, *use.partition, *(key.expression for key in use.order)]
            read += [] if use.call.filter is None else [use.call.filter]
        read += [argument for one in self.found.sets for argument in one.arguments]
        return set().union(*map(columns_of, read)) if read else set()

    def add_windows(self, node: n.Node) -> n.Node:
        """One Window node for each different window, in the order they were met."""
        places: dict[int, int] = {}
        pending = list(enumerate(self.found.windows))
        while pending:
            first = pending[0][1]
            same = [(i, one) for i, one in pending if one[1:4] == first[1:4]]
            pending = [(i, one) for i, one in pending if one[1:4] != first[1:4]]
            width = len(node.fields)
            for place, (i, _) in enumerate(same):
                places[i] = width + place
            calls = tuple([one.call for _, one in same])
            names = tuple([one.name for _, one in same])
            node = n.Window(node, first.partition, first.order, first.frame, calls, names)
        if places:
            self.rewrite_expressions(lambda one: _replace_markers(one, WINDOW, places))
        return node

    def add_set_functions(self, node: n.Node) -> n.Node:
        """Set-returning functions of the select list: a lateral join with all of them in step."""
        if not self.found.sets:
            return node
        width = len(node.fields)
        calls = tuple(
            [
                one._replace(arguments=tuple([lift_expression(x, 1) for x in one.arguments]))
                for one in self.found.sets
            ]
        )
        fields = tuple([field for one in calls for field in one.fields])
        function = n.TableFunction(calls, fields)
        places = {i: width + i for i in range(len(calls))}
        self.rewrite_expressions(lambda one: _replace_markers(one, SET, places))
        return n.Join(n.JoinKind.INNER, node, function, lateral=True)

    def rewrite_expressions(self, change: Callable[[e.Expression], e.Expression]) -> None:
        self.targets = [OutputColumn(one.name, change(one.expression)) for one in self.targets]
        self.keys = [replace(one, expression=change(one.expression)) for one in self.keys]
        self.on = [change(one) for one in self.on]

    # -- finishing ------------------------------------------------------------------------------

    def project_output(self, node: n.Node, locks: tuple[t.LockClause, ...]) -> n.Node:
        """Select list, DISTINCT, ORDER BY, locks; the query around it cuts extra columns off."""
        expressions = [one.expression for one in self.targets]
        width = len(expressions)
        lock_targets = self.bind_lock_targets(node, locks)
        keys = self.place_sort_keys(expressions)
        on = [self.place_expression(expressions, one) for one in self.on]
        if len(expressions) > width and self.tree.distinct and not self.tree.distinct_on:
            raise InvalidInput(
                "for select distinct, order by expressions must appear in select list",
                sqlstate="42P10",
                position=self.tree.at + 1,
            )
        moved = []
        for target in lock_targets:
            fields = node.fields
            start = len(expressions)
            expressions += [e.Column(i, fields[i].type, fields[i].name) for i in target.key]
            moved.append(target._replace(key=tuple(range(start, len(expressions)))))
        made: n.Node = n.Project(node, tuple(expressions), self.make_fields(expressions))
        made = self.add_distinct_and_sort(made, keys, on)
        if moved:
            made = n.Lock(made, tuple(moved), locks[0].strength, locks[0].wait)
        return made

    def make_fields(self, expressions: list[e.Expression]) -> n.Fields:
        named = [n.Field(one.name, one.expression.type) for one in self.targets]
        return tuple(
            named + [n.Field(_label_column(one), one.type) for one in expressions[len(named) :]]
        )

    def place_sort_keys(self, expressions: list[e.Expression]) -> tuple[e.SortKey, ...]:
        return tuple(
            [
                replace(key, expression=self.place_expression(expressions, key.expression))
                for key in self.keys
            ]
        )

    def place_expression(
        self, expressions: list[e.Expression], expression: e.Expression
    ) -> e.Column:
        """The column of the projected row that holds the expression, added when there is none."""
        if expression not in expressions:
            expressions.append(expression)
        index = expressions.index(expression)
        shown = index < len(self.targets)
        name = self.targets[index].name if shown else _label_column(expression)
        return e.Column(index, expression.type, name)

    def add_distinct_and_sort(
        self, node: n.Node, keys: tuple[e.SortKey, ...], on: list[e.Column]
    ) -> n.Node:
        if not self.tree.distinct:
            return n.Sort(node, keys) if keys else node
        for field in node.fields[: len(self.targets)]:
            if field.type.kind in UNCOMPARED_KINDS and not on:
                raise InvalidInput("could not identify an equality operator", sqlstate="42883")
        if not on:
            node = n.Distinct(node)
            return n.Sort(node, keys) if keys else node
        leading = {key.expression for key in keys[: len(set(on))]}
        if keys and not leading <= set(on):
            raise InvalidInput(
                "select distinct on expressions must match initial order by expressions",
                sqlstate="42P10",
                position=self.tree.at + 1,
            )
        node = n.Sort(node, keys) if keys else node
        return n.Distinct(node, tuple(on))

    def bind_lock_targets(
        self, node: n.Node, locks: tuple[t.LockClause, ...]
    ) -> tuple[n.LockTarget, ...]:
        if not locks:
            return ()
        if len(locks) > 1:
            raise Unsupported("several locking clauses", position=locks[1].at + 1)
        clause = locks[0]
        tree = self.tree
        if tree.distinct or tree.groups is not None or self.found.aggregates or self.found.windows:
            raise Unsupported("locking of grouped or distinct rows", position=clause.at + 1)
        found = []
        for source in self.scope.relation.sources:
            if clause.of and source.alias not in clause.of:
                continue
            if isinstance(source.table, Table):
                live = [column.slot for column in source.table.columns if not column.dropped]
                key = tuple(source.start + live.index(slot) for slot in source.table.primary_key)
                found.append(n.LockTarget(source.table.id, source.table.name, key))
                if self.binder.rights is not None:
                    self.binder.rights.add_relation(source.table, "w")
            elif clause.of:
                raise Unsupported("lock of this relation", position=clause.at + 1)
        missing = set(clause.of) - {source.alias for source in self.scope.relation.sources}
        if missing:
            raise InvalidInput(
                "relation in for update clause not found in from clause",
                sqlstate="42P01",
                position=clause.at + 1,
                name=sorted(missing)[0],
            )
        return tuple(found)


def _rewrite_window(use: WindowUse, regroup: GroupRowRewriter) -> WindowUse:
    change = regroup.rewrite_expression
    call = replace(
        use.call,
        arguments=tuple([change(one) for one in use.call.arguments]),
        filter=None if use.call.filter is None else change(use.call.filter),
    )
    order = tuple([replace(one, expression=change(one.expression)) for one in use.order])
    return use._replace(call=call, partition=tuple(map(change, use.partition)), order=order)


def _replace_markers(expression: e.Expression, base: int, places: dict[int, int]) -> e.Expression:
    def replace_marker(column: e.Column) -> e.Expression:
        place = places.get(column.index - base)
        return column if place is None else replace(column, index=place)

    return map_columns(expression, replace_marker)


def _label_column(expression: e.Expression) -> str:
    """A name for an extra column, for people only."""
    return expression.name if isinstance(expression, e.Column) else "?column?"


def _collect_markers(expression: e.Expression) -> list[int]:
    found: list[int] = []

    def collect_marker(column: e.Column) -> e.Expression:
        if column.index >= AGGREGATE:
            found.append(column.index)
        return column

    map_columns(expression, collect_marker)
    return found
