"""Imports go down only, and the check notices when one does not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import imports

REPOSITORY = Path(__file__).resolve().parents[2]


def test_repository_imports_go_down_only() -> None:
    problems = imports.check(REPOSITORY)
    assert not problems, "\n".join(problems)


def plant(root: Path, **modules: str) -> Path:
    """Modules by name, with `__` for a dot: kv__memory is src/belvedere/kv/memory.py."""
    for name, text in modules.items():
        path = root / "src/belvedere" / (name.replace("__", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_import_of_a_lower_layer_passes(tmp_path: Path) -> None:
    tree = plant(
        tmp_path,
        txn__commit="from belvedere.catalog import model\nfrom belvedere.errors import Retry\n",
        catalog__model="from belvedere import errors\n",
        errors="",
    )
    assert imports.check(tree) == []


@pytest.mark.parametrize(
    "code",
    [
        "from belvedere.txn.commit import run\n",
        "from belvedere.txn import commit\n",
        "import belvedere.txn.commit\n",
        "from ..txn import commit\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import belvedere.txn.commit\n",
        "def f():\n    import belvedere.txn.commit  # heavy\n",
    ],
)
def test_import_of_a_higher_layer_fails(tmp_path: Path, code: str) -> None:
    tree = plant(tmp_path, txn__commit="", catalog__model=code)
    [problem] = imports.check(tree)
    assert "src/belvedere/catalog/model.py" in problem
    assert "catalog imports txn, which is not below it" in problem


@pytest.mark.parametrize(
    ("one", "other"), [("sql", "txn"), ("kv", "codec"), ("pipeline", "advisor"), ("kv", "remote")]
)
def test_siblings_do_not_see_each_other(tmp_path: Path, one: str, other: str) -> None:
    tree = plant(tmp_path, **{f"{one}__a": f"from belvedere.{other} import b\n", f"{other}__b": ""})
    assert f"{one} imports {other}" in imports.check(tree)[0]


def test_import_of_the_top_package_from_below_fails(tmp_path: Path) -> None:
    tree = plant(tmp_path, __init__="connect = 1\n", kv__a="from belvedere import connect\n")
    (tmp_path / "src/belvedere/__init__.py").write_text("connect = 1\n")
    assert "kv imports __init__" in imports.check(tree)[0]


def test_unknown_subpackage_fails(tmp_path: Path) -> None:
    tree = plant(tmp_path, helpers__a="")
    assert "helpers has no place in LAYERS" in imports.check(tree)[0]


def test_cycle_inside_a_subpackage_fails(tmp_path: Path) -> None:
    tree = plant(
        tmp_path,
        remote__a="from belvedere.remote import b\n",
        remote__b="from belvedere.remote.c import x\n",
        remote__c="from belvedere.remote import a\n",
    )
    [problem] = imports.check(tree)
    cycle = problem.removeprefix("import cycle: ").split(" -> ")
    assert set(cycle) == {"belvedere.remote.a", "belvedere.remote.b", "belvedere.remote.c"}
    assert cycle[cycle.index("belvedere.remote.a") + 1] == "belvedere.remote.b"


def test_cycle_for_the_type_checker_alone_passes(tmp_path: Path) -> None:
    typing = (
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from belvedere.remote import b\n"
    )
    tree = plant(tmp_path, remote__a=typing, remote__b="from belvedere.remote import a\n")
    assert imports.check(tree) == []


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    import json\n",
        "class A:\n    async def f(self):\n        from json import dumps\n",
    ],
)
def test_import_inside_a_function_fails(tmp_path: Path, code: str) -> None:
    tree = plant(tmp_path, kv__a=code)
    [problem] = imports.check(tree)
    assert "import inside a function" in problem


@pytest.mark.parametrize(
    "code",
    [
        "def f():\n    import pyspark  # heavy\n",
        "def f():\n    from pyspark.sql import (  # heavy\n        Row,\n    )\n",
    ],
)
def test_heavy_import_inside_a_function_passes(tmp_path: Path, code: str) -> None:
    assert imports.check(plant(tmp_path, kv__a=code)) == []


# -- inside a package -------------------------------------------------------------------------


@pytest.fixture
def ordered(monkeypatch: pytest.MonkeyPatch) -> None:
    """A package `kv` of three names, of which two are siblings."""
    monkeypatch.setitem(imports.FOLDERS, "kv", (("top",), ("left", "right"), ("low",)))


@pytest.mark.usefixtures("ordered")
@pytest.mark.parametrize(("source", "target"), [("top", "low"), ("left", "low"), ("top", "left")])
def test_import_down_the_order_of_a_package_passes(
    tmp_path: Path, source: str, target: str
) -> None:
    code = {f"kv__{source}__a": f"from belvedere.kv.{target} import b\n", f"kv__{target}__b": ""}
    assert imports.check(plant(tmp_path, **code)) == []


@pytest.mark.usefixtures("ordered")
@pytest.mark.parametrize(("source", "target"), [("low", "top"), ("left", "right")])
def test_import_up_or_across_in_a_package_fails(tmp_path: Path, source: str, target: str) -> None:
    code = {f"kv__{source}__a": f"from belvedere.kv.{target} import b\n", f"kv__{target}__b": ""}
    [problem] = imports.check(plant(tmp_path, **code))
    assert f"{source} imports {target}, which is not below it" in problem


@pytest.mark.usefixtures("ordered")
def test_folder_without_a_place_in_its_package_fails(tmp_path: Path) -> None:
    code = {"kv__top__a": "from belvedere.kv.other import b\n", "kv__other__b": ""}
    [problem] = imports.check(plant(tmp_path, **code))
    assert "other has no place in the order of belvedere.kv" in problem


def test_import_past_the_surface_of_a_package_fails(tmp_path: Path) -> None:
    tree = plant(
        tmp_path,
        txn__a="from belvedere.remote import inner, outer\n",
        remote__inner="",
        remote__outer="from belvedere.remote import inner\n",
    )
    assert imports.check(tree) == []
    (tree / "src/belvedere/remote/__init__.py").write_text('"""Stores."""\nSURFACE = ("outer",)\n')
    [problem] = imports.check(tree)
    assert "belvedere.remote.inner is not in the SURFACE of belvedere.remote" in problem


def test_surface_that_names_what_nobody_imports_fails(tmp_path: Path) -> None:
    tree = plant(tmp_path, txn__a="", remote__outer="")
    (tree / "src/belvedere/remote/__init__.py").write_text('"""Stores."""\nSURFACE = ("outer",)\n')
    [problem] = imports.check(tree)
    assert "SURFACE names outer, which nobody imports" in problem
