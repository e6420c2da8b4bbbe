"""A printer of plans as indented trees, for EXPLAIN and for golden tests.

    Project id, total
      Filter total > 10
        Scan orders (id, total) prefix customer = $1

`exact` adds to every column its index in the row (`total#3`) and to outer columns their depth, for
tests of the binder. `note` may add text to a node's line: estimates, the chosen tier, actual rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import assert_never

from belvedere.plan import access as paths
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.expression_printer import ExpressionPrinter
from belvedere.plan.transform import inputs

Annotate = Callable[[n.Node], str]


def print_plan(node: n.Node, *, exact: bool = False, note: Annotate | None = None) -> str:
    """The tree, one node a line, without a line end at the end."""
    printer = _PlanPrinter(exact, note)
    printer.print_node(node, 0)
    return "\n".join(printer.lines)


class _PlanPrinter(ExpressionPrinter):
    def __init__(self, exact: bool, note: Annotate | None) -> None:
        super().__init__(exact)
        self.note = note
        self.lines: list[str] = []
        self.pending: list[tuple[str, n.Node]] = []

    def print_node(self, node: n.Node, depth: int) -> None:
        # Sub-queries found while the line is formatted are printed below it, as children.
        self.pending = []
        text = self.node_line(node)
        if self.note is not None and (added := self.note(node)):
            text += f"  {added}"
        self.lines.append("  " * depth + text)
        subqueries, self.pending = self.pending, []
        for name, plan in subqueries:
            self.lines.append("  " * (depth + 1) + name)
            self.print_node(plan, depth + 2)
        for child in children_to_print(node):
            if isinstance(child, n.Cte):
                mark = " materialized" if child.materialized else ""
                self.lines.append("  " * (depth + 1) + f"Cte {child.name}@{child.number}{mark}")
                self.print_node(child.plan, depth + 2)
            else:
                self.print_node(child, depth + 1)

    def node_line(self, node: n.Node) -> str:
        match node:
            case n.Scan() | n.State() | n.Changes():
                return self.scan(node)
            case n.VirtualScan():
                return f"VirtualScan {node.schema}.{node.name}"
            case n.ForeignScan():
                return self.foreign_scan(node)
            case n.Values():
                rows = ", ".join(f"({self.expression_list(row)})" for row in node.rows[:20])
                more = f", .. {len(node.rows)} rows" if len(node.rows) > 20 else ""
                return f"Values {rows}{more}"
            case n.TableFunction():
                calls = ", ".join(
                    f"{call.function.name}({self.expression_list(call.arguments)})"
                    for call in node.calls
                )
                return f"TableFunction {calls}" + (" with ordinality" if node.ordinality else "")
            case n.CteScan():
                return f"CteScan {node.name}@{node.cte}"
            case n.Filter():
                return f"Filter {self.expression(node.condition)}"
            case n.Project():
                return f"Project {self.select_list(node.expressions, node.fields)}"
            case n.Aggregate():
                return self.aggregate(node)
            case n.Window():
                return self.window(node)
            case n.Sort():
                return f"Sort {self.sort_keys(node.keys)}"
            case n.Limit():
                return f"Limit{self.limit_clause(node)}"
            case n.TopN():
                return f"TopN {self.sort_keys(node.keys)}{self.limit_clause(node)}"
            case n.Distinct():
                return (
                    "Distinct"
                    if node.on is None
                    else f"Distinct on ({self.expression_list(node.on)})"
                )
            case _:
                return self.other_node_line(node)

    def other_node_line(
        self,
        node: n.Lock
        | n.Join
        | n.SetOperation
        | n.RecursiveUnion
        | n.With
        | n.Insert
        | n.Update
        | n.Delete,
    ) -> str:
        match node:
            case n.Lock():
                names = ", ".join(target.name for target in node.targets)
                return f"Lock {names} for {node.strength} {node.wait}".rstrip()
            case n.Join():
                return self.join(node)
            case n.SetOperation():
                return node.kind.value.capitalize() + (" all" if node.all else "")
            case n.RecursiveUnion():
                return f"RecursiveUnion {node.name}@{node.cte}" + (" all" if node.all else "")
            case n.With():
                return "With"
            case n.Insert():
                return self.insert(node)
            case n.Update():
                assigned = self.assignments(node.assignments)
                return f"Update {node.name} set {assigned}" + self.row_rules(node.rules, node)
            case n.Delete():
                return f"Delete {node.name}" + self.returning_clause(node)
            case _:
                assert_never(node)

    def scan(self, node: n.Scan | n.State | n.Changes) -> str:
        names = ", ".join(field.name for field in node.fields)
        text = f"{type(node).__name__} {node.name} ({names})"
        if isinstance(node, n.Changes):
            text += f" {node.start}..{node.end}"
        else:
            text += f" at {node.at}" if isinstance(node, n.State) else ""
            if node.access != paths.FULL:
                text += " " + self.access_path(node.access)
        if node.filter is not None:
            text += f" filter {self.expression(node.filter)}"
        if not isinstance(node, n.Changes) and node.residual != node.filter:
            residual = node.residual
            text += f" residual {self.expression(residual) if residual is not None else 'none'}"
        return text

    def foreign_scan(self, node: n.ForeignScan) -> str:
        names = ", ".join(field.name for field in node.fields)
        text = f"ForeignScan {node.name} ({names})"
        return text if node.filter is None else f"{text} filter {self.expression(node.filter)}"

    def access_path(self, access: paths.Access) -> str:
        words = [access.kind.value]
        if access.index is not None:
            words.append(f"index {access.index_name}" + (" only" if access.covering else ""))
        shown = [self.key_part(part) for part in access.parts]
        if access.range is not None:
            shown.append(self.key_range(access.range))
        if shown:
            words.append("[" + ", ".join(shown) + "]")
        if access.full_key and access.index is not None:
            words.append("unique")
        if access.ordered:
            words.append("ordered")
        if access.reverse:
            words.append("reverse")
        return " ".join(words)

    def key_part(self, part: paths.Part) -> str:
        match part:
            case paths.EqualityPart():
                return self.expression(part.value)
            case paths.InListPart():
                return f"in ({self.expression_list(part.values)})"
            case paths.AnyElementPart():
                return f"any ({self.expression(part.array)})"
            case paths.IsNullPart():
                return "is null"
            case _:
                assert_never(part)

    def key_range(self, bounds: paths.Range) -> str:
        shown = []
        if bounds.low is not None:
            sign = ">=" if bounds.low.inclusive else ">"
            shown.append(f"{sign} {self.expression(bounds.low.value)}")
        if bounds.high is not None:
            sign = "<=" if bounds.high.inclusive else "<"
            shown.append(f"{sign} {self.expression(bounds.high.value)}")
        if bounds.pattern is not None:
            shown.append(f"like {self.expression(bounds.pattern)}")
        return " ".join(shown)

    def subplan_label(self, plan: n.Node, word: str) -> str:
        for known, other in self.pending:
            if other is plan:
                return f"<{known}>"
        name = f"{word} {len(self.pending) + 1}"
        self.pending.append((name, plan))
        return f"<{name}>"

    def aggregate(self, node: n.Aggregate) -> str:
        words = ["Aggregate"]
        calls = [self.function_call(call) for call in node.aggregates]
        calls += [f"grouping{list(ordinals)}" for ordinals in node.groupings]
        if calls:
            words.append(", ".join(calls))
        if node.groups:
            words.append(f"by {self.expression_list(node.groups)}")
        if node.grouping_sets is not None:
            words.append("sets " + ", ".join(str(list(one)) for one in node.grouping_sets))
        return " ".join(words)

    def function_call(self, call: e.AggregateCall | e.WindowCall) -> str:
        inner = self.expression_list(call.arguments)
        name = call.function.name
        if isinstance(call, e.AggregateCall):
            inner = ("distinct " if call.distinct else "") + (
                inner or ("*" if name == "count" else "")
            )
            if call.order_by:
                inner += f" order by {self.sort_keys(call.order_by)}"
        text = f"{name}({inner})"
        if call.filter is not None:
            text += f" filter ({self.expression(call.filter)})"
        return text

    def window(self, node: n.Window) -> str:
        words = ["Window", ", ".join(self.function_call(call) for call in node.calls)]
        if node.partition:
            words.append(f"partition {self.expression_list(node.partition)}")
        if node.order:
            words.append(f"order {self.sort_keys(node.order)}")
        if node.frame != n.Frame():
            frame = node.frame
            bounds = f"{self.frame_bound(frame.start)} to {self.frame_bound(frame.end)}"
            words.append(f"{frame.mode} {bounds}")
            if frame.exclude:
                words.append(f"exclude {frame.exclude}")
        return " ".join(words)

    def frame_bound(self, bound: n.FrameBound) -> str:
        if bound.offset is None:
            return bound.side.value
        return f"{self.expression(bound.offset)} {bound.side.value}"

    def join(self, node: n.Join) -> str:
        words = ["Join", node.kind.value]
        if node.lateral:
            words.append("lateral")
        if node.method is not n.JoinMethod.LOOP:
            words.append(node.method.value)
        on = [self.join_key(key) for key in node.keys]
        if on:
            words.append("on " + " and ".join(on))
        if node.residual is not None:
            words.append(f"residual {self.expression(node.residual)}")
        if node.lookup is not None:
            words.append("by " + self.access_path(node.lookup.access))
            if node.lookup.condition is not None:
                words.append(f"check {self.expression(node.lookup.condition)}")
        return " ".join(words)

    def join_key(self, key: n.JoinKey) -> str:
        sign = "is" if key.null_safe else "="
        return f"{self.expression(key.left)} {sign} {self.expression(key.right)}"

    def insert(self, node: n.Insert) -> str:
        text = f"Insert {node.name} {list(node.ordinals)}"
        conflict = node.on_conflict
        if conflict is not None:
            target = "primary" if conflict.primary else conflict.target or "any"
            text += f" on conflict {target}"
            if conflict.assignments is None:
                text += " do nothing"
            else:
                text += f" do update set {self.assignments(conflict.assignments)}"
            if conflict.where is not None:
                text += f" where {self.expression(conflict.where)}"
        return text + self.row_rules(node.rules, node)

    def assignments(self, assignments: Sequence[n.Assignment]) -> str:
        return ", ".join(f"[{a.ordinal}] := {self.expression(a.value)}" for a in assignments)

    def row_rules(self, rules: n.RowRules, node: n.Insert | n.Update) -> str:
        text = ""
        if rules.generated:
            text += f" generate {self.assignments(rules.generated)}"
        if rules.not_null:
            text += f" not null {list(rules.not_null)}"
        for check in rules.checks:
            text += f" check {check.name} ({self.expression(check.condition)})"
        return text + self.returning_clause(node)

    def returning_clause(self, node: n.Insert | n.Update | n.Delete) -> str:
        return (
            f" returning {self.select_list(node.returning, node.fields)}" if node.returning else ""
        )

    def limit_clause(self, node: n.Limit | n.TopN) -> str:
        text = "" if node.count is None else f" {self.expression(node.count)}"
        if isinstance(node, n.TopN):
            text = " limit" + text
        if node.with_ties:
            text += " with ties"
        return text + ("" if node.offset is None else f" offset {self.expression(node.offset)}")

    def select_list(self, expressions: Sequence[e.Expression], fields: n.Fields) -> str:
        shown = []
        for expression, field in zip(expressions, fields):
            text = self.expression(expression)
            plain = isinstance(expression, e.Column) and expression.name == field.name
            shown.append(text if plain else f"{text} as {field.name}")
        return ", ".join(shown)


def children_to_print(node: n.Node) -> tuple[n.Node | n.Cte, ...]:
    return (*node.ctes, node.body) if isinstance(node, n.With) else inputs(node)
