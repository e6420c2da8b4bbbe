"""Names with quotes inside, where functions of the system catalogs read them as text."""

from __future__ import annotations

import pytest

import belvedere


@pytest.mark.parametrize("name", ['quote " two', '"', 'a""b', 'x"', '"y', "it's", "Two Words"])
def test_name_is_found_by_its_quoted_text(name: str) -> None:
    quoted = '"' + name.replace('"', '""') + '"'
    with belvedere.connect(":memory:", autocommit=True) as con:
        con.execute(f"CREATE TABLE {quoted} (a int)")
        found = con.execute(
            "SELECT relname FROM pg_class WHERE oid = to_regclass(?) AND pg_table_is_visible(oid)",
            (f"public.{quoted}",),
        )
        assert found.fetchall() == [(name,)]
