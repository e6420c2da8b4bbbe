"""pgcli: its look-ups at the start, and its commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.interfaces.server.clients.conftest import PASSWORD

COMMANDS = """create table goods (id integer primary key, name text);
insert into goods values (1, 'a chair');
\\d goods
\\dt
\\dv
\\dm
\\di
\\ds
\\dn
\\du
\\l
\\dT
select * from goods;
\\q
"""


def test_commands_and_statements(uri: str, tmp_path: Path) -> None:
    environment = {
        "HOME": str(tmp_path),
        "PATH": "/usr/bin:/bin",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }
    ran = subprocess.run(
        [str(Path(sys.executable).parent / "pgcli"), "--less-chatty", uri],
        input=COMMANDS,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
        env=environment,
    )
    shown = ran.stdout + ran.stderr
    assert "Traceback" not in shown, shown
    assert "not supported" not in shown, shown
    assert "does not exist" not in shown, shown
    for expected in ("a chair", "goods_pkey", "INSERT 0 1", "public"):
        assert expected in shown, shown
    assert PASSWORD not in ran.stderr
