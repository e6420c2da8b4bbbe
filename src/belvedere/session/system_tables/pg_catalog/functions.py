"""The answers of functions that read the system catalogs, by the function's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from belvedere.catalog.model import PlainView, View
from belvedere.errors import InvalidInput
from belvedere.plan.functions import functions_by_name
from belvedere.session.notify import publish_unless_in_transaction
from belvedere.session.system_tables.pg_catalog import (
    definitions,
    function_rows,
    privileges,
    shared_rows,
    sizes,
)
from belvedere.session.system_tables.pg_catalog.comment_rows import CLASS_OIDS, find_comments
from belvedere.session.system_tables.pg_catalog.constraint_rows import find_constraints
from belvedere.session.system_tables.pg_catalog.relations import Relation, Relations, find_relations
from belvedere.session.system_tables.pg_catalog.type_rows import (
    PSEUDO_NAMES,
    PSEUDO_TYPES,
    TYPES_BY_OID,
    find_type_by_name,
    find_type_functions,
    format_type,
)
from belvedere.sql.parse.lexical.render import quote
from belvedere.types import ObjectName

if TYPE_CHECKING:
    from belvedere.session.session import Session

Answer = Callable[..., Any]
ANSWERS_KEPT = 50_000
NAME_LENGTH_MAX = 1_000
"""Answers about longer names are not kept."""
OID_DIGITS_MAX = 10
_MEASURED = frozenset(
    {
        "pg_database_size",
        "pg_indexes_size",
        "pg_relation_size",
        "pg_table_size",
        "pg_tablespace_size",
        "pg_total_relation_size",
        "pg_backend_pid",
        "pg_notify",
        "set_config",
    }
)
"""What follows from the data too, or does something."""
_ENCODINGS = {shared_rows.UTF8: "UTF8"}


class CatalogAnswers:
    """Answers functions for one session. Those that follow from the catalog and the search path
    are given once for each of their versions, because queries ask for every row."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._known: dict[tuple[Any, ...], Any] = {}
        self._valid_for: tuple[object, int] = (None, 0)

    def ask_catalog(self, name: str, *arguments: Any) -> Any:
        """The answer of the function of that name."""
        session = self._session
        valid_for = (session.catalog, session.settings.version)
        if self._valid_for != valid_for or len(self._known) >= ANSWERS_KEPT:
            self._known, self._valid_for = {}, valid_for
        key = (name, *arguments)
        if key in self._known:
            return self._known[key]
        answer = ANSWERS[name](session, *arguments)
        longest = max((len(one) for one in arguments if isinstance(one, str)), default=0)
        if name not in _MEASURED and longest <= NAME_LENGTH_MAX:
            self._known[key] = answer
        return answer


# -- names -----------------------------------------------------------------------------------------


def _find_visible_schemas(session: Session) -> list[str]:
    """The schemas whose objects need no qualification, in the order of the search path."""
    known = find_relations(session.catalog).schema_names.values()
    path = [name for name in session.settings.get("search_path") if name in known]
    rights = session.identity.find_rights_unless_superuser(session.catalog)
    if rights is not None:
        usable = {one.name for one in session.catalog.schemas if rights.has(one, "U")}
        path = [name for name in path if name in usable]
    return ["pg_catalog", *(path or ["public"])]


def _split_qualified_name(text: str) -> list[str]:
    """The parts of a qualified name; unquoted ones in lower case, a quote in them written twice."""
    parts, word, quoted, before = [], "", False, ""
    for character in text.strip():
        if character == '"':
            word += '"' if before == '"' and not quoted else ""
            quoted, before = not quoted, "" if before == '"' and not quoted else '"'
            continue
        before = ""
        if quoted:
            word += character
        elif character == ".":
            parts.append(word)
            word = ""
        elif not character.isspace():
            word += character.lower()
    return [*parts, word]


def _find_relation_by_name(session: Session, text: str) -> Relation | None:
    parts = _split_qualified_name(text)
    relations = find_relations(session.catalog)
    if len(parts) > 1:
        return relations.by_name.get((parts[-2], parts[-1]))
    for schema in _find_visible_schemas(session):
        found = relations.by_name.get((schema, parts[0]))
        if found is not None:
            return found
    return None


def _make_regclass(session: Session, relation: Relation) -> ObjectName:
    visible = _find_relation_by_name(session, quote(relation.name)) is relation
    own = quote(relation.name)
    return ObjectName(relation.oid, own if visible else f"{quote(relation.schema)}.{own}")


def _is_oid(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= OID_DIGITS_MAX


def _to_regclass(session: Session, text: str) -> ObjectName | None:
    if _is_oid(text):
        return _name_relation_of_oid(session, int(text))
    found = _find_relation_by_name(session, text)
    return None if found is None else _make_regclass(session, found)


def _parse_regclass(session: Session, text: str) -> ObjectName:
    found = ObjectName(0, "-") if text == "-" else _to_regclass(session, text)
    if found is None:
        raise InvalidInput("relation does not exist", sqlstate="42P01", name=text)
    return found


def _name_relation_of_oid(session: Session, oid: int) -> ObjectName:
    found = find_relations(session.catalog).by_oid.get(oid)
    if found is None:
        return ObjectName(oid, str(oid) if oid else "-")
    return _make_regclass(session, found)


def _to_regtype(session: Session, text: str) -> ObjectName | None:
    if _is_oid(text):
        return _name_type_of_oid(session, int(text))
    pseudo = text.removeprefix("pg_catalog.")
    if pseudo in PSEUDO_TYPES:
        return ObjectName(PSEUDO_TYPES[pseudo], pseudo)
    found = find_type_by_name(text)
    return None if found is None else ObjectName(found.oid, str(found.type))


def _parse_regtype(session: Session, text: str) -> ObjectName:
    found = ObjectName(0, "-") if text == "-" else _to_regtype(session, text)
    if found is None:
        raise InvalidInput("type does not exist", sqlstate="42704", type=text)
    return found


def _name_type_of_oid(session: Session, oid: int) -> ObjectName:
    known = TYPES_BY_OID.get(oid)
    other = PSEUDO_NAMES.get(oid) or str(oid) if oid else "-"
    return ObjectName(oid, str(known.type) if known else other)


def _to_regnamespace(session: Session, text: str) -> ObjectName | None:
    if _is_oid(text):
        return _name_schema_of_oid(session, int(text))
    (wanted,) = _split_qualified_name(text)[-1:]
    for oid, name in find_relations(session.catalog).schemas.items():
        if name == wanted:
            return ObjectName(oid, quote(name))
    return None


def _parse_regnamespace(session: Session, text: str) -> ObjectName:
    found = _to_regnamespace(session, text)
    if found is None:
        raise InvalidInput("schema does not exist", sqlstate="3F000", name=text)
    return found


def _name_schema_of_oid(session: Session, oid: int) -> ObjectName:
    name = find_relations(session.catalog).schemas.get(oid)
    return ObjectName(oid, quote(name) if name else str(oid) if oid else "-")


def _to_regproc(session: Session, text: str) -> ObjectName | None:
    if _is_oid(text):
        return _name_function_of_oid(session, int(text))
    (wanted,) = _split_qualified_name(text)[-1:]
    return find_type_functions().get(wanted)


def _parse_regproc(session: Session, text: str) -> ObjectName:
    found = ObjectName(0, "-") if text == "-" else _to_regproc(session, text)
    if found is None:
        raise InvalidInput("function does not exist", sqlstate="42883", name=text)
    return found


def _name_function_of_oid(session: Session, oid: int) -> ObjectName:
    for one in find_type_functions().values():
        if one == oid:
            return one
    return ObjectName(oid, str(oid) if oid else "-")


def _is_table_visible(session: Session, oid: int) -> bool | None:
    relation = find_relations(session.catalog).by_oid.get(oid)
    if relation is None:
        return None
    return _find_relation_by_name(session, quote(relation.name)) is relation


def _is_type_visible(session: Session, oid: int) -> bool | None:
    return True if oid in TYPES_BY_OID else None


def _list_current_schemas(session: Session, implicit: bool) -> list[str]:
    found = _find_visible_schemas(session)
    return found if implicit else found[1:]


# -- definitions -----------------------------------------------------------------------------------


def _find_index(session: Session, oid: int) -> tuple[Relations, Relation] | None:
    relations = find_relations(session.catalog)
    found = relations.by_oid.get(oid)
    return None if found is None or found.shape is None else (relations, found)


def _get_index_definition(
    session: Session, oid: int, column: int = 0, pretty: bool = False
) -> str | None:
    found = _find_index(session, oid)
    if found is None:
        return None
    if column:
        return definitions.describe_index_column(found[1], column)
    relations, index = found
    assert index.shape is not None
    table = _make_regclass(session, relations.by_oid[index.shape.relation]).text if pretty else None
    return definitions.describe_index(relations, index, pretty=pretty, table_name=table)


def _get_constraint_definition(session: Session, oid: int, pretty: bool = False) -> str | None:
    found = find_constraints(find_relations(session.catalog)).get(oid)
    return None if found is None else found.text


def _get_view_definition(session: Session, view: int | str, pretty: Any = None) -> str | None:
    oid = _parse_regclass(session, view) if isinstance(view, str) else view
    found = find_relations(session.catalog).by_oid.get(oid)
    if found is None or not isinstance(found.item, View | PlainView) or found.shape is not None:
        return None if found is None else "Not a view"
    return f" {found.item.definition};"


def _format_stored_expression(
    session: Session, text: str, relation: int, pretty: bool = False
) -> str | None:
    """Expressions are stored as text."""
    return text if pretty else definitions.parenthesize_expression(text)


def _get_serial_sequence(session: Session, table: str, column: str) -> str | None:
    oid = _parse_regclass(session, table)
    relations = find_relations(session.catalog)
    for shown in relations.by_oid[oid].columns:
        if shown.name == column and shown.stored is not None:
            found = None if shown.stored.sequence is None else shown.stored.sequence
            if found is None:
                return None
            item = relations.catalog.objects[found]
            schema = relations.schema_names[item.schema]
            return f"{quote(schema)}.{quote(item.name)}"
    raise InvalidInput("column does not exist", sqlstate="42703", column=column)


def _get_role_name(session: Session, oid: int) -> str:
    return shared_rows.find_role_names(session.catalog).get(oid, f"unknown (OID={oid})")


# -- settings and sizes ----------------------------------------------------------------------------


def _get_setting(session: Session, name: str, missing_ok: bool = False) -> str | None:
    try:
        return session.settings.get_shown_text(name)
    except InvalidInput:
        if missing_ok:
            return None
        raise


def _set_setting(
    session: Session, name: str | None, value: str | None, local: bool | None
) -> str | None:
    if name is None:
        raise InvalidInput("set_config requires a setting name", sqlstate="22004")
    session.settings.set(name, value, local=bool(local))
    return session.settings.get_shown_text(name)


def _send_notification(session: Session, channel: str | None, payload: str | None) -> str:
    session.notifications.add_notification(channel or "", payload or "")
    publish_unless_in_transaction(session)
    return ""


def _get_comment(session: Session, oid: int, catalog: str | None = None) -> str | None:
    """Without a catalog, the comment of anything that has this OID."""
    comments = find_comments(find_relations(session.catalog))
    if catalog is None:
        return next((text for key, text in comments.items() if key[::2] == (oid, 0)), None)
    return comments.get((oid, CLASS_OIDS.get(catalog, 0), 0))


def _get_column_comment(session: Session, oid: int, number: int) -> str | None:
    key = (oid, CLASS_OIDS["pg_class"], number)
    return find_comments(find_relations(session.catalog)).get(key) if number else None


def _measure_relation(session: Session, oid: int, fork: str = "main") -> int | None:
    relation = find_relations(session.catalog).by_oid.get(oid)
    if relation is None:
        return None
    return sizes.measure_table(session, relation) if fork == "main" else 0


def _measure_indexes(session: Session, oid: int) -> int | None:
    relations = find_relations(session.catalog)
    relation = relations.by_oid.get(oid)
    return None if relation is None else sizes.measure_indexes(session, relations, relation)


def _measure_with_indexes(session: Session, oid: int) -> int | None:
    own, indexes = _measure_relation(session, oid), _measure_indexes(session, oid)
    return None if own is None or indexes is None else own + indexes


def _measure_database(session: Session, database: int | str) -> int:
    return sizes.measure_database(session, find_relations(session.catalog))


def _is_utf8(name: str) -> bool:
    return name.lower().replace("-", "").replace("_", "") in ("utf8", "unicode")


def _make_constant_answer(value: Any) -> Answer:
    return lambda session, *arguments: value


_NO_OBJECT = (
    "shobj_description pg_get_function_arg_default "
    "pg_get_function_sqlbody pg_get_functiondef pg_get_partition_constraintdef pg_get_partkeydef "
    "pg_get_ruledef pg_get_statisticsobjdef_columns pg_get_statisticsobjdef pg_get_triggerdef"
).split()
"""What describes triggers and other objects that do not exist here."""

_ALWAYS_TRUE = [
    name for name in functions_by_name() if name.endswith(("_privilege", "_is_visible"))
]
"""What is not a relation is in pg_catalog, and everybody may use it."""

ANSWERS: dict[str, Answer] = {
    "regclass of text": _parse_regclass,
    "regclass of oid": _name_relation_of_oid,
    "regtype of text": _parse_regtype,
    "regtype of oid": _name_type_of_oid,
    "regnamespace of text": _parse_regnamespace,
    "regnamespace of oid": _name_schema_of_oid,
    "regproc of text": _parse_regproc,
    "regproc of oid": _name_function_of_oid,
    "to_regclass": _to_regclass,
    "to_regtype": _to_regtype,
    "to_regnamespace": _to_regnamespace,
    "col_description": _get_column_comment,
    "obj_description": _get_comment,
    "format_type": lambda session, oid, modifier: format_type(oid, modifier),
    "current_schemas": _list_current_schemas,
    "current_setting": _get_setting,
    "set_config": _set_setting,
    "getdatabaseencoding": _make_constant_answer("UTF8"),
    "pg_client_encoding": _make_constant_answer("UTF8"),
    "pg_char_to_encoding": lambda session, name: shared_rows.UTF8 if _is_utf8(name) else -1,
    "pg_encoding_to_char": lambda session, number: _ENCODINGS.get(number, ""),
    "pg_backend_pid": lambda session: session.notifications.process,
    "pg_advisory_unlock_all": _make_constant_answer(""),
    "pg_notify": _send_notification,
    "pg_get_constraintdef": _get_constraint_definition,
    "pg_get_expr": _format_stored_expression,
    "pg_get_function_arguments": lambda session, oid: function_rows.format_arguments(oid),
    "pg_get_function_identity_arguments": lambda session, oid: function_rows.format_arguments(oid),
    "pg_get_function_result": lambda session, oid: function_rows.format_result_type(oid),
    "pg_get_indexdef": _get_index_definition,
    "pg_get_serial_sequence": _get_serial_sequence,
    "pg_get_userbyid": _get_role_name,
    "pg_get_viewdef": _get_view_definition,
    "pg_is_in_recovery": _make_constant_answer(False),
    "pg_is_other_temp_schema": _make_constant_answer(False),
    "pg_tablespace_location": lambda session, oid: "",
    "pg_my_temp_schema": _make_constant_answer(0),
    "pg_partition_ancestors": _make_constant_answer(()),
    "pg_relation_is_publishable": _make_constant_answer(False),
    "pg_database_size": _measure_database,
    "pg_indexes_size": _measure_indexes,
    "pg_relation_size": _measure_relation,
    "pg_table_size": _measure_relation,
    "pg_tablespace_size": _measure_database,
    "pg_total_relation_size": _measure_with_indexes,
    "pg_available_extensions": _make_constant_answer(()),
    **dict.fromkeys(_ALWAYS_TRUE, _make_constant_answer(True)),
    **dict.fromkeys(_NO_OBJECT, _make_constant_answer(None)),
    "pg_has_role": privileges.has_role_privilege,
    "has_any_column_privilege": privileges.make_relation_privilege_function(
        _find_relation_by_name, columns=True
    ),
    "has_column_privilege": privileges.make_column_privilege_function(_find_relation_by_name),
    "has_database_privilege": privileges.has_database_privilege,
    "has_schema_privilege": privileges.has_schema_privilege,
    "has_sequence_privilege": privileges.make_relation_privilege_function(_find_relation_by_name),
    "has_table_privilege": privileges.make_relation_privilege_function(_find_relation_by_name),
    "pg_table_is_visible": _is_table_visible,
    "pg_type_is_visible": _is_type_visible,
}
