"""Binds WITH: common table expressions, recursive ones, and those that change data."""

from __future__ import annotations

from belvedere.errors import InvalidInput, Unsupported
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.overloads import casts_implicitly
from belvedere.plan.transform import walk_plan
from belvedere.sql.bind.binder import Binder
from belvedere.sql.bind.expressions.coerce import coerce
from belvedere.sql.bind.scope import CteName, NameScope, rename_columns
from belvedere.sql.parse import tree as t


def bind_ctes(
    binder: Binder,
    trees: tuple[t.CteTree, ...],
    recursive: bool,
    parent: NameScope | None,
    ctes: dict[str, CteName],
) -> tuple[list[n.Cte], dict[str, CteName]]:
    """The CTEs of a statement, and the names that its body sees."""
    if not trees:
        return [], ctes
    names = dict(ctes)
    if recursive:
        names |= {
            tree.name: _make_refused_name(tree, "forward reference in with recursive")
            for tree in trees
        }
    made: list[n.Cte] = []
    own: set[str] = set()
    for tree in trees:
        if tree.name in own:
            raise InvalidInput(
                "with query name specified more than once",
                sqlstate="42712",
                position=tree.at + 1,
                name=tree.name,
            )
        own.add(tree.name)
        cte = _bind_cte(binder, tree, recursive, parent, names)
        made.append(cte)
        names[tree.name] = CteName(cte.number, cte.name, cte.plan.fields)
    return made, names


def _make_refused_name(tree: t.CteTree, construct: str = "") -> CteName:
    """The name where it must not be read: before its own place, or inside itself."""
    error = Unsupported(construct, name=tree.name) if construct else _not_recursive_error(tree.name)
    return CteName(-1, tree.name, (), error)


def _not_recursive_error(name: str) -> InvalidInput:
    return InvalidInput(
        "recursive query does not have the form non-recursive term union [all] recursive term",
        sqlstate="42P19",
        name=name,
    )


def wrap_with_ctes(ctes: list[n.Cte], body: n.Node) -> n.Node:
    """The body under those of the CTEs that are read or change data."""
    if not ctes:
        return body
    return n.With(tuple(ctes), body)


def _bind_cte(
    binder: Binder,
    tree: t.CteTree,
    recursive: bool,
    parent: NameScope | None,
    names: dict[str, CteName],
) -> n.Cte:
    number = binder.next_cte_number()
    statement = tree.statement
    changes = not isinstance(statement, t.QueryTree)
    if isinstance(statement, t.QueryTree):
        plan = None
        if recursive:
            names = {**names, tree.name: _make_refused_name(tree)}
            plan = _bind_recursive(binder, tree, statement, number, parent, names)
        if plan is None:
            plan = binder.rules.query(binder, statement, parent, names, False)
    else:
        plan = binder.rules.change(binder, statement, parent, names)
    plan = _rename_plan(plan, tree)
    return n.Cte(number, tree.name, plan, changes or bool(tree.materialized))


def _rename_plan(plan: n.Node, tree: t.CteTree) -> n.Node:
    if not tree.columns:
        return plan
    fields = _name_fields(plan, tree)
    if fields == plan.fields:
        return plan
    columns = tuple(e.Column(i, f.type, f.name) for i, f in enumerate(plan.fields))
    return n.Project(plan, columns, fields)


def _name_fields(plan: n.Node, tree: t.CteTree) -> n.Fields:
    known = tuple(field.name for field in plan.fields)
    names = rename_columns(known, tree.columns, tree.name)
    return tuple(n.Field(name, field.type) for name, field in zip(names, plan.fields))


def _bind_recursive(
    binder: Binder,
    tree: t.CteTree,
    query: t.QueryTree,
    number: int,
    parent: NameScope | None,
    names: dict[str, CteName],
) -> n.Node | None:
    """`base UNION [ALL] step`, where only the step reads the CTE itself; None when it does not."""
    body = query.body
    if not isinstance(body, t.SetOperationTree) or body.kind != "union" or query.ctes:
        return None  # another form may stand under RECURSIVE as long as it does not read itself
    base_tree = t.QueryTree(body.left, body.at)
    base = binder.rules.query(binder, base_tree, parent, names, False)
    own = CteName(number, tree.name, _name_fields(base, tree))
    step_tree = (
        body.right if isinstance(body.right, t.QueryTree) else t.QueryTree(body.right, body.at)
    )
    step = binder.rules.query(binder, step_tree, parent, {**names, tree.name: own}, True)
    reads = sum(isinstance(one, n.CteScan) and one.cte == number for one in walk_plan(step))
    if not reads:
        return None
    if reads > 1:
        raise InvalidInput(
            "recursive reference must not appear more than once",
            sqlstate="42P19",
            position=tree.at + 1,
            name=tree.name,
        )
    if query.order_by or query.limit is not None or query.offset is not None:
        raise Unsupported("order by or limit in a recursive query", position=tree.at + 1)
    _check_recursive_step(step, number, tree)
    step = _match_step_types(binder, tree, base, step)
    return n.RecursiveUnion(number, tree.name, base, step, body.all)


def _check_recursive_step(step: n.Node, number: int, tree: t.CteTree) -> None:
    for node in walk_plan(step):
        inner: tuple[n.Node, ...] = ()
        if isinstance(node, n.Join) and node.kind is n.JoinKind.LEFT:
            inner = (node.right,)
        elif isinstance(node, n.Join) and node.kind is n.JoinKind.RIGHT:
            inner = (node.left,)
        elif isinstance(node, n.Join) and node.kind is n.JoinKind.FULL:
            inner = (node.left, node.right)
        elif isinstance(node, n.Aggregate):
            inner = (node.input,)
        elif isinstance(node, n.SetOperation) and node.kind is n.SetKind.EXCEPT:
            inner = (node.right,)
        for one in inner:
            if any(isinstance(x, n.CteScan) and x.cte == number for x in walk_plan(one)):
                raise InvalidInput(
                    "recursive reference is not allowed here",
                    sqlstate="42P19",
                    position=tree.at + 1,
                    name=tree.name,
                )


def _match_step_types(binder: Binder, tree: t.CteTree, base: n.Node, step: n.Node) -> n.Node:
    if len(step.fields) != len(base.fields):
        raise InvalidInput(
            "each union query must have the same number of columns",
            sqlstate="42601",
            position=tree.at + 1,
        )
    columns: list[e.Expression] = []
    for i, (old, new) in enumerate(zip(base.fields, step.fields)):
        if not casts_implicitly(new.type, old.type):
            raise InvalidInput(
                "recursive query column has another type in its non-recursive term",
                sqlstate="42804",
                position=tree.at + 1,
                hint="cast the output of the non-recursive term to the correct type",
                column=old.name,
            )
        column = e.Column(i, new.type, new.name)
        if isinstance(step, n.Project):
            columns.append(coerce(binder, step.expressions[i], old.type))
        else:
            columns.append(coerce(binder, column, old.type))
    source = step.input if isinstance(step, n.Project) else step
    return n.Project(source, tuple(columns), base.fields)
