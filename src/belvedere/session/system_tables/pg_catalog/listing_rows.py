"""The views that list objects by name: pg_tables, pg_views, pg_matviews and their relatives."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from belvedere.catalog.model import ObjectState, PlainView, Sequence, View
from belvedere.session.system_tables.pg_catalog.class_rows import find_sequence_type
from belvedere.session.system_tables.pg_catalog.columns import make_row_builder
from belvedere.session.system_tables.pg_catalog.definitions import describe_index
from belvedere.session.system_tables.pg_catalog.relations import Relations
from belvedere.types import ObjectName, Row
from belvedere.values.type_oids import find_oid

if TYPE_CHECKING:
    from belvedere.session.session import Session


def _name_sequence_type(sequence: Sequence) -> ObjectName:
    found = find_sequence_type(sequence)
    return ObjectName(find_oid(found), str(found))


def list_tables(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_tables")
    for one in relations.every_relation:
        if one.kind == "r":
            yield build(
                schemaname=one.schema,
                tablename=one.name,
                tableowner=relations.find_owner_name(one),
                hasindexes=one.oid in relations.indexes_by_relation,
            )


def list_views(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_views")
    for one in relations.every_relation:
        if isinstance(one.item, PlainView):
            yield build(
                schemaname=one.schema,
                viewname=one.name,
                viewowner=relations.find_owner_name(one),
                definition=f"{one.item.definition};",
            )


def list_materialized_views(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_matviews")
    for one in relations.every_relation:
        if one.kind == "m" and isinstance(one.item, View):
            yield build(
                schemaname=one.schema,
                matviewname=one.name,
                matviewowner=relations.find_owner_name(one),
                hasindexes=one.oid in relations.indexes_by_relation,
                ispopulated=one.item.state is ObjectState.READY,
                definition=f"{one.item.definition};",
            )


def list_named_indexes(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_indexes")
    for one in relations.every_relation:
        if one.shape is not None:
            table = relations.by_oid[one.shape.relation]
            yield build(
                schemaname=one.schema,
                tablename=table.name,
                indexname=one.name,
                indexdef=describe_index(relations, one),
            )


def list_named_sequences(relations: Relations) -> Iterator[Row]:
    build = make_row_builder("pg_sequences")
    for one in relations.every_relation:
        if isinstance(one.item, Sequence):
            sequence = one.item
            yield build(
                schemaname=one.schema,
                sequencename=one.name,
                sequenceowner=relations.find_owner_name(one),
                data_type=_name_sequence_type(sequence),
                start_value=sequence.start,
                min_value=sequence.minimum,
                max_value=sequence.maximum,
                increment_by=sequence.increment,
                cycle=sequence.cycle,
                cache_size=sequence.cache,
                last_value=None,
            )


def list_settings(session: Session) -> Iterator[Row]:
    build = make_row_builder("pg_settings")
    for name, setting in sorted(session.settings.settings_by_name().items()):
        yield build(
            name=name,
            setting=session.settings.get_shown_text(name),
            category="Belvedere",
            short_desc=setting.description,
            context="internal" if setting.fixed else "user",
            vartype="string",
            source="default",
            boot_val=setting.default,
            reset_val=setting.default,
        )
