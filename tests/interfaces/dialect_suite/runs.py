"""Runs of SQLAlchemy's dialect suite, each by a pytest of its own: on PostgreSQL, over the wire
with SQLAlchemy's PostgreSQL dialect, and embedded with Belvedere's."""

from __future__ import annotations

import getpass
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from xml.etree import ElementTree

import belvedere
from belvedere.config import Durability
from belvedere.interfaces.server.listener import Endpoints, Listener
from belvedere.interfaces.stores import OpenOptions, acquire_store, release_store
from tests.interfaces.dialect_suite.requirements import REQUIREMENTS_VARIABLE
from tests.oracle.postgres import server as start_postgres

HERE = Path(__file__).parent
REPOSITORY = HERE.parent.parent.parent
SCHEMAS = ("test_schema", "test_schema_2")
"""Schemas that the suite expects to find."""
PASSED, FAILED, SKIPPED = "passed", "failed", "skipped"


POSTGRES_REQUIREMENTS, OWN_REQUIREMENTS = "PostgresRequirements", "BelvedereRequirements"


def run_suite(
    url: str,
    options: Sequence[str] = (),
    seconds_max: float = 1800,
    requirements: str = OWN_REQUIREMENTS,
) -> dict[str, str]:
    """The outcome of every test, by `Class.name`. SQLAlchemy's option for requirements loses
    against its configuration file, so they are chosen by the environment."""
    with tempfile.TemporaryDirectory(prefix="belvedere-suite-") as scratch:
        report = Path(scratch) / "report.xml"
        command = [sys.executable, "-m", "pytest", "-q", "--tb=short", "-rN"]
        command += ["-c", str(HERE / "setup.cfg"), f"--rootdir={HERE}", f"--junitxml={report}"]
        command += ["-p", f"{__package__}.plugin", "--dburi", url, *options]
        command += [str(HERE / "suite_cases.py")]
        paths = os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "src")])
        ran = subprocess.run(
            command,
            cwd=REPOSITORY,
            env={**os.environ, "PYTHONPATH": paths, REQUIREMENTS_VARIABLE: requirements},
            stdout=None if "BELVEDERE_SUITE_OUTPUT" in os.environ else subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds_max,
            check=False,
        )
        if not report.exists() or ran.returncode not in (0, 1):
            raise RuntimeError(f"the suite broke off: {(ran.stdout or b'')[-4000:].decode()}")
        return read_outcomes(report)


def read_outcomes(report: Path) -> dict[str, str]:
    outcomes = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):
        name = _name_case(case)
        if case.find("failure") is not None or case.find("error") is not None:
            outcomes[name] = FAILED
        else:
            outcomes[name] = PASSED if case.find("skipped") is None else SKIPPED
    return outcomes


def _name_case(case: ElementTree.Element) -> str:
    """`Class.name`, without the database that the suite writes into it."""
    class_name = str(case.get("classname")).rpartition(".")[2]
    class_name, name = (
        re.split("_(?:postgresql|belvedere)", f"{class_name}")[0],
        str(case.get("name")),
    )
    return f"{class_name}.{name}"


@contextmanager
def open_postgres() -> Iterator[str]:
    """A database of PostgreSQL for one run."""
    postgres = start_postgres()
    postgres.connection.execute("DROP DATABASE IF EXISTS suite")
    postgres.connection.execute("CREATE DATABASE suite")
    host = postgres.connection.info.host
    with postgres.connect(dbname="suite", autocommit=True) as connection:
        for schema in SCHEMAS:
            connection.execute(f"CREATE SCHEMA {schema}")
    yield f"postgresql+psycopg://postgres@/suite?host={host}"


@contextmanager
def open_server() -> Iterator[str]:
    """A server in this process, on a store in a directory."""
    with tempfile.TemporaryDirectory(prefix="belvedere-suite-") as scratch:
        create_schemas(Path(scratch) / "suite.db")
        options = OpenOptions(durability=Durability.OFF, allow_remote=False)
        store = acquire_store(f"{scratch}/suite.db", options)
        listener = Listener(store.shared, "suite", Endpoints(Path(scratch), 5432))
        try:
            yield f"postgresql+psycopg://{getpass.getuser()}@/suite?host={scratch}"
        finally:
            listener.close()
            release_store(store)


@contextmanager
def open_embedded() -> Iterator[str]:
    with tempfile.TemporaryDirectory(prefix="belvedere-suite-") as scratch:
        create_schemas(Path(scratch) / "suite.db")
        yield f"belvedere:///{scratch}/suite.db?durability=off"


def create_schemas(path: Path) -> None:
    with belvedere.connect(str(path), durability="off", autocommit=True) as connection:
        for schema in SCHEMAS:
            connection.execute(f"CREATE SCHEMA {schema}")


DOORS: dict[str, Callable[[], object]] = {
    "postgresql": open_postgres,
    "wire": open_server,
    "embedded": open_embedded,
}
