"""Expressions that the catalog stores as text: defaults, checks, generated columns, index parts."""

from __future__ import annotations

import functools

from belvedere.catalog.catalog import Catalog, empty_catalog
from belvedere.catalog.model import CatalogColumn, Index, KeyPart, Table
from belvedere.errors import Error, InvalidInput
from belvedere.plan import expressions as e
from belvedere.plan import nodes as n
from belvedere.plan.functions.core.function import Volatility
from belvedere.plan.transform import columns_of, has_subplan, operands
from belvedere.sql.bind.binder import Binder, BinderRules, Env
from belvedere.sql.bind.expressions.coerce import (
    ASSIGNMENT,
    coerce,
    default_to_text,
    require_boolean,
)
from belvedere.sql.bind.scope import EMPTY_RELATION, NameScope, make_source_relation
from belvedere.sql.parse.script import parse_expression_text
from belvedere.types import SqlType


class StoredExpressions:
    """Binds such texts, and caches those that need no catalog. One per set of binding rules."""

    def __init__(self, rules: BinderRules) -> None:
        self.rules = rules
        self._pure = functools.lru_cache(maxsize=4096)(self._bind_pure)

    def bind_expression(
        self, catalog: Catalog, text: str, fields: n.Fields, target: SqlType | None = None
    ) -> e.Expression:
        """The expression over a row of `fields`, assigned to `target` when that is given."""
        try:
            return self._bind_cached(catalog, text, fields, target)
        except Error as error:
            error.position = None  # it would be a place in this text, not in the statement
            raise

    def _bind_cached(
        self, catalog: Catalog, text: str, fields: n.Fields, target: SqlType | None
    ) -> e.Expression:
        if "val" in text and "(" in text:  # nextval, setval, .. are looked up in the catalog
            return self._bind_text(catalog, text, fields, target)
        return self._pure(text, fields, target)

    def _bind_pure(self, text: str, fields: n.Fields, target: SqlType | None) -> e.Expression:
        return self._bind_text(empty_catalog(), text, fields, target)

    def _bind_text(
        self, catalog: Catalog, text: str, fields: n.Fields, target: SqlType | None
    ) -> e.Expression:
        binder = Binder(catalog, self.rules)
        relation = EMPTY_RELATION
        if fields:
            names = tuple(field.name for field in fields)
            relation = make_source_relation(n.Values((), fields), "", names)
        scope = NameScope(relation, None, {})
        env = Env(binder, scope, "this expression")
        bound = self.rules.expression(env, parse_expression_text(text))
        if target is not None:
            bound = coerce(binder, bound, target, ASSIGNMENT)
        return default_to_text(binder, bound)

    def bind_condition(self, catalog: Catalog, text: str, fields: n.Fields) -> e.Expression:
        bound = self.bind_expression(catalog, text, fields)
        return require_boolean(Binder(catalog, self.rules), bound, "check", None)

    # -- tables ---------------------------------------------------------------------------------

    def bind_default(self, catalog: Catalog, column: CatalogColumn) -> e.Expression:
        """The value of a column for which an INSERT gives none."""
        if column.sequence is not None:
            sequence = catalog.get(column.sequence)
            name = "" if sequence is None else sequence.name
            next_value = e.SequenceCall("nextval", column.sequence, name)
            return coerce(Binder(catalog, self.rules), next_value, column.type, ASSIGNMENT)
        if column.default is None:
            return e.Literal(None, column.type)
        return self.bind_expression(catalog, column.default, (), column.type)

    def bind_row_rules(
        self, catalog: Catalog, table: Table, changed: set[int] | None
    ) -> n.RowRules:
        """The row rules of a table; for an UPDATE only those that the changed ordinals affect."""
        fields = table_fields(table)
        generated: list[n.Assignment] = []
        touched = None if changed is None else set(changed)
        for ordinal, column in enumerate(live_columns(table)):
            if column.generated is None:
                continue
            value = self.bind_expression(catalog, column.generated, fields, column.type)
            if touched is None or columns_of(value) & touched:
                generated.append(n.Assignment(ordinal, value))
        if touched is not None:
            touched |= {one.ordinal for one in generated}
        not_null = tuple(
            ordinal
            for ordinal, column in enumerate(live_columns(table))
            if column.not_null and not column.hidden and (touched is None or ordinal in touched)
        )
        checks = []
        for check in table.checks:
            condition = self.bind_condition(catalog, check.expression, fields)
            if touched is None or columns_of(condition) & touched:
                checks.append(n.RowCheck(check.name, condition))
        return n.RowRules(tuple(generated), not_null, tuple(checks))

    def bind_key_part(self, catalog: Catalog, table: Table, part: KeyPart) -> e.Expression:
        """A key part of an index over the table row."""
        fields = table_fields(table)
        if part.slot is not None:
            ordinal = [column.slot for column in live_columns(table)].index(part.slot)
            return e.Column(ordinal, fields[ordinal].type, fields[ordinal].name)
        assert part.expression is not None
        return self.bind_expression(catalog, part.expression, fields)

    def bind_predicate(self, catalog: Catalog, table: Table, index: Index) -> e.Expression | None:
        """The WHERE of a partial index over the table row."""
        if index.where is None:
            return None
        return self.bind_condition(catalog, index.where, table_fields(table))


def live_columns(table: Table) -> list[CatalogColumn]:
    """The columns of a table's row in plans: those not dropped, in slot order."""
    return [column for column in table.columns if not column.dropped]


def table_fields(table: Table) -> n.Fields:
    """The table's row in plans; a hidden column has no name that can be written."""
    return tuple([n.Field("" if one.hidden else one.name, one.type) for one in live_columns(table)])


def require_immutable(expression: e.Expression, what: str) -> None:
    """42P17 for an expression whose value could change while its row does not."""
    if has_subplan(expression):
        raise InvalidInput(f"cannot use subquery in {what}", sqlstate="0A000")
    if find_volatility(expression) is not Volatility.IMMUTABLE:
        raise InvalidInput(f"functions in {what} must be immutable", sqlstate="42P17")


def find_volatility(expression: e.Expression) -> Volatility:
    """The most volatile of all functions inside."""
    found = Volatility.IMMUTABLE
    match expression:
        case e.SequenceCall():
            return Volatility.VOLATILE
        case e.Call() | e.Cast():
            found = expression.function.volatility
    for one in operands(expression):
        inner = find_volatility(one)
        if inner is Volatility.VOLATILE:
            return inner
        if inner is Volatility.STABLE:
            found = found if found is Volatility.VOLATILE else inner
    return found
