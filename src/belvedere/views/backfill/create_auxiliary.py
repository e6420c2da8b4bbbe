"""The auxiliary views of a new view: existing ones that serve it, and new ones to create."""

from __future__ import annotations

import itertools
from dataclasses import replace

import msgspec

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.definition_rules import NAME_BYTES_MAX, truncate_name
from belvedere.catalog.definitions import ViewDefinition
from belvedere.catalog.edit import CatalogEdit
from belvedere.catalog.model import Maintenance, View
from belvedere.catalog.view_options import FORM_NAMES, IndexColumns, parse_options
from belvedere.views.compile.auxiliary_containment import contains_auxiliary
from belvedere.views.compile.auxiliary_views import Auxiliary, find_required_auxiliaries
from belvedere.views.compile.compile_view import compile_auxiliary
from belvedere.views.compile.defined_view import DefinedView
from belvedere.views.registry.view_registry import ViewRegistry


def find_or_create_auxiliaries(
    registry: ViewRegistry, edit: CatalogEdit, defined: DefinedView
) -> tuple[int, ...]:
    """The ids of the auxiliary views that the view requires, in the order of its parts; existing
    ones are shared. They are immediate, as indexes are, also those of a deferred view."""
    made: list[tuple[Auxiliary, int]] = []
    wanted = defined.definition
    for part, one in enumerate(defined.compiled.required_auxiliaries, 1):
        shared = _find_shared_auxiliary(registry, edit.catalog, one, wanted)
        made.append((one, shared or _create_auxiliary(registry, edit, wanted, part, one, made)))
    return tuple(id_ for _, id_ in made)


def _find_shared_auxiliary(
    registry: ViewRegistry, catalog: Catalog, one: Auxiliary, wanted: ViewDefinition
) -> int | None:
    """An existing auxiliary view that contains the required one, and depends only on relations that
    this view depends on."""
    for view in catalog.views:
        on_same = set(view.inputs) <= set(wanted.inputs) and set(view.reads) <= set(wanted.reads)
        if view.part and on_same:
            if contains_auxiliary(registry.get_auxiliary_definition(catalog, view), one):
                return view.id
    return None


def _create_auxiliary(
    registry: ViewRegistry,
    edit: CatalogEdit,
    parent: ViewDefinition,
    part: int,
    one: Auxiliary,
    made: list[tuple[Auxiliary, int]],
) -> int:
    compiled = compile_auxiliary(one)
    auxiliary_views = tuple(
        next(id_ for known, id_ in made if known.has_same_definition(nested))
        for nested in find_required_auxiliaries(compiled.tree)
    )
    fields = compiled.build_read_plan(0).fields
    definition = replace(
        parent,
        name=_make_auxiliary_name(edit, parent.name, part),
        columns=tuple((f"{i} {field.name}", field.type) for i, field in enumerate(fields)),
        stored=tuple((f"{i} {field.name}", field.type) for i, field in enumerate(compiled.stored)),
        key_columns=compiled.key_column_count,
        amounts=compiled.amounts,
        supporting_objects=auxiliary_views,
        maintenance=Maintenance.IMMEDIATE,
        # The options that a definition is compiled with, so that its parts have equal numbers.
        options=parse_options(parent.options.select_texts(FORM_NAMES)),
        index=None if parent.index is None else IndexColumns(parent.index.slots),
        replaces=None,
    )
    id_ = edit.create_view(definition)
    view = edit.catalog.require_relation(View, definition.name, parent.schema)
    edit.put(
        msgspec.structs.replace(
            view, part=part, auxiliary_views=auxiliary_views, orders=compiled.stored_orders
        )
    )
    registry.cache_compiled_definition(edit.catalog, id_, compiled, one)
    return id_


def _make_auxiliary_name(edit: CatalogEdit, parent: str, part: int) -> str:
    """The name of a part of a view; of those whose names are cut to the same one, each its own."""
    name = f"{parent} (auxiliary {part})"
    if len(name.encode()) <= NAME_BYTES_MAX:
        return name
    taken = {view.name for view in edit.catalog.views}
    suffixes = (f"{part}" if not number else f"{part}, {number}" for number in itertools.count())
    names = (truncate_name(parent, f" (auxiliary {suffix})") for suffix in suffixes)
    return next(name for name in names if name not in taken)
