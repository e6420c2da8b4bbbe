"""Which column of which table each column of a result is: what clients ask to edit rows.

A column is traced through the plan as it was bound, down to the table, materialized view or plain
view that the statement names; what is computed, or comes from both sides of a set operation, has no
origin.
"""

from __future__ import annotations

from collections.abc import Mapping

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import PlainView, Table, View
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.fields import ColumnOrigin, ColumnOrigins

ViewNodes = Mapping[int, tuple[n.Node, PlainView]]
"""Plans that plain views were expanded to, by the id of the plan."""


def find_column_origins(catalog: Catalog, plan: n.Node, views: ViewNodes) -> ColumnOrigins:
    """The origin of each field of a plan."""
    return _OriginTrace(catalog, views).list_origins(plan)


class _OriginTrace:
    def __init__(self, catalog: Catalog, views: ViewNodes) -> None:
        self._catalog = catalog
        self._views = views
        self._ctes: dict[int, ColumnOrigins] = {}

    def list_origins(self, node: n.Node) -> ColumnOrigins:
        if id(node) in self._views:
            view = self._views[id(node)][1]
            return tuple([ColumnOrigin(view.id, i + 1) for i in range(len(node.fields))])
        match node:
            case n.Scan():
                return self._list_columns(node.relation, node.slots)
            case n.Project():
                return self._pick_columns(node.expressions, self.list_origins(node.input))
            case n.Filter() | n.Sort() | n.Limit() | n.TopN() | n.Distinct() | n.Lock():
                return self.list_origins(node.input)
            case n.Window():
                return self.list_origins(node.input) + (None,) * len(node.calls)
            case n.Aggregate():
                found = self._pick_columns(node.groups, self.list_origins(node.input))
                return found + (None,) * (len(node.fields) - len(found))
            case n.Join() if node.kind in (n.JoinKind.SEMI, n.JoinKind.ANTI):
                return self.list_origins(node.left)
            case n.Join():
                return self.list_origins(node.left) + self.list_origins(node.right)
            case n.With():
                for cte in node.ctes:
                    self._ctes[cte.number] = self.list_origins(cte.plan)
                return self.list_origins(node.body)
            case n.CteScan() if node.cte in self._ctes:
                return self._ctes[node.cte]
            case n.Insert():
                return self._pick_columns(node.returning, self._list_all_columns(node.relation))
            case n.Update() | n.Delete():
                row = self._list_all_columns(node.relation)[: node.width]
                row += self.list_origins(node.input)[node.width :]
                return self._pick_columns(node.returning, row)
            case _:
                return (None,) * len(node.fields)

    def _pick_columns(
        self, expressions: tuple[e.Expression, ...], row: ColumnOrigins
    ) -> ColumnOrigins:
        return tuple([row[x.index] if isinstance(x, e.Column) else None for x in expressions])

    def _list_columns(self, relation: int, slots: tuple[int, ...]) -> ColumnOrigins:
        item = self._catalog.objects.get(relation)
        if not isinstance(item, Table | View):
            return (None,) * len(slots)
        shown = [column.slot for column in item.columns if not column.hidden]
        numbers = {slot: i for i, slot in enumerate(shown, 1)}
        return tuple(
            [ColumnOrigin(relation, numbers[slot]) if slot in numbers else None for slot in slots]
        )

    def _list_all_columns(self, relation: int) -> ColumnOrigins:
        item = self._catalog.objects[relation]
        assert isinstance(item, Table)
        live = tuple([column.slot for column in item.columns if not column.dropped])
        return self._list_columns(relation, live)
