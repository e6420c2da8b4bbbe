"""Options of views: what they mean, and that the catalog stores them as it always has.

`stored_views.json` has records of views, and a whole catalog, as they were encoded when the options
of a view were a plain map in Python too; beside each record what was in it.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from belvedere.catalog import model
from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import HEAD_ID, Maintenance, View, ViewKind
from belvedere.catalog.view_options import (
    NO_OPTIONS,
    Backfill,
    IndexColumns,
    Schedule,
    ViewForm,
    ViewOptions,
    check_options,
    decode_options,
    encode_options,
    parse_options,
)
from belvedere.errors import InvalidInput

STORED = json.loads((Path(__file__).parent / "stored_views.json").read_text())


def view_of(record: dict[str, Any]) -> View:
    found = model.decode(bytes.fromhex(record["record"]))
    assert isinstance(found, View)
    return found


def stored(name: str) -> View:
    """The first record of that name."""
    return view_of(next(one for one in STORED["views"] if one["name"] == name))


# -- what was stored before ------------------------------------------------------------------------


@pytest.mark.parametrize("record", STORED["views"], ids=lambda one: f"{one['name']} {one['state']}")
def test_a_stored_view_is_read_and_written_back_byte_for_byte(record: dict[str, Any]) -> None:
    view = view_of(record)
    assert view.stored_options == record["options"]
    assert encode_options(view.options, view.index, view.replaces) == record["options"]
    assert view.supporting_objects == tuple(record["auxiliaries"])
    assert view.auxiliary_views == tuple(record["supports"])
    assert (view.part, view.maintenance) == (record["part"], record["maintenance"])
    assert model.encode(view).hex() == record["record"]


def test_a_stored_catalog_is_read_as_a_whole() -> None:
    objects = [model.decode(bytes.fromhex(record)) for record in STORED["catalog"]]
    catalog = Catalog({item.id: item for item in objects})
    assert catalog.head.id == HEAD_ID
    kinds = {view.name: view.kind for view in catalog.views}
    assert kinds["plain"] is ViewKind.USER
    assert kinds["by_name"] is ViewKind.INDEX
    assert kinds["of_table"] is ViewKind.INDEX
    assert kinds["by_name (auxiliary 1)"] is ViewKind.AUXILIARY
    assert kinds["distincts (auxiliary 4)"] is ViewKind.AUXILIARY
    distincts = catalog.require_relation(View, "distincts")
    assert len(distincts.auxiliary_views) == 4
    assert distincts.supporting_objects == distincts.auxiliary_views


def test_texts_of_stored_views_have_their_types() -> None:
    lagging, periodic = stored("lagging").options, stored("periodic").options
    assert (lagging.maintenance, lagging.keep_changes) == (Maintenance.DEFERRED, 1000)
    assert lagging.schedule == Schedule(max_lag_us=500_000)
    assert lagging.texts["maintenance"] == "Deferred"
    assert periodic.schedule == Schedule(refresh_every_us=1_500_000)
    assert periodic.backfill is Backfill.RESUMABLE
    assert stored("waits").options.backfill is Backfill.LATER
    assert stored("near").form == ViewForm(local=True)
    assert stored("side").form == ViewForm(colocated=True)
    assert stored("anew").form == ViewForm(strict=False)
    assert stored("plain").options == NO_OPTIONS


def test_indexes_and_replacements_have_their_types() -> None:
    assert stored("by_name").index == IndexColumns((0, 1), key_count=1, unique_count=1)
    assert stored("by_name").is_unique
    assert stored("by_n").index == IndexColumns((1, 0), key_count=2)
    assert not stored("by_n").is_unique
    assert stored("of_table").index == IndexColumns((2, 0, 1))
    assert stored("by_name (auxiliary 1)").form == ViewForm(is_index=True)
    replacing = stored("by_name (new 37)")
    assert (replacing.kind, replacing.replaces) == (ViewKind.INDEX, stored("by_name").id)
    assert stored("plain").replaces is None


def test_what_the_catalog_holds_and_nobody_knows_is_left_alone() -> None:
    """A program may have stored an option without asking SQL."""
    options = decode_options({"colour": "red", "index": "0"})
    assert options.texts == {"colour": "red"}
    assert encode_options(options, IndexColumns((0,))) == {"colour": "red", "index": "0"}


# -- what a user writes ----------------------------------------------------------------------------


def test_texts_stay_as_they_were_written_in_their_order() -> None:
    given = {"max_lag": " 5s", "maintenance": "DEFERRED", "placement": "Local", "strict": "NO"}
    options = check_options(given)
    assert list(options.texts.items()) == list(given.items())
    assert options == ViewOptions(
        texts=given,
        maintenance=Maintenance.DEFERRED,
        schedule=Schedule(max_lag_us=5_000_000),
        local=True,
        strict=False,
    )
    assert options.select_texts(["strict", "join", "placement"]) == {
        "placement": "Local",
        "strict": "NO",
    }
    assert options.with_text("keep_changes", "7").keep_changes == 7


REFUSED = {
    "unknown option of a materialized view": {"colour": "red", "maintenance": "often"},
    "invalid placement": {"placement": "here"},
    "invalid join": {"join": "nested"},
    "invalid strict": {"strict": "2"},
    "a co-located join cannot be local": {"placement": "local", "join": "colocated"},
    "invalid backfill": {"backfill": "Later"},
    "a view has either max_lag or refresh_every": {"max_lag": "1 s", "refresh_every": "1 s"},
    "invalid duration": {"max_lag": "0 s", "maintenance": "deferred"},
    "keep_changes is a number of positions": {"keep_changes": "0"},
    "invalid maintenance": {"maintenance": ""},
    "a schedule is for deferred views": {"max_lag": "1 s"},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_no_view_can_have_is_refused(message: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        check_options(REFUSED[message])
    assert (refused.value.message, refused.value.sqlstate) == (message, "22023")


@pytest.mark.parametrize("name", ["index", "index keys", "unique", "takes the place of"])
def test_nobody_writes_what_the_system_notes(name: str) -> None:
    with pytest.raises(InvalidInput, match="unknown option"):
        check_options({name: "1"})


@pytest.mark.parametrize("parse", [check_options, parse_options])
def test_the_first_fault_is_named_in_the_order_of_the_checks(
    parse: Callable[[dict[str, str]], ViewOptions],
) -> None:
    faults = {
        "maintenance": "often",
        "keep_changes": "x",
        "max_lag": "x",
        "backfill": "x",
        "placement": "x",
    }
    said = []
    while faults:
        with pytest.raises(InvalidInput) as refused:
            parse(faults)
        said.append(refused.value.message)
        faults.popitem()
    assert said == [
        "invalid placement",
        "invalid backfill",
        "invalid duration",
        "keep_changes is a number of positions",
        "invalid maintenance",
    ]
