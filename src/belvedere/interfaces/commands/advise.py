"""`belvedere advise URL`: which views are worth having, and with `--apply` their creation."""

from __future__ import annotations

import enum
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from belvedere.errors import Error, InvalidInput
from belvedere.interfaces import stores
from belvedere.interfaces.advice import AdviceOptions, give_advice, give_review
from belvedere.interfaces.exceptions import Error as DoorError
from belvedere.remote.client import ask_owner_once
from belvedere.remote.frames import Request
from belvedere.session.session import Session

if TYPE_CHECKING:
    from belvedere.interfaces.remote import RemoteSession

_UNITS = {"": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}


class ReportForm(enum.StrEnum):
    TEXT = "text"
    JSON = "json"
    HTML = "html"


def advise(
    url: Annotated[str, typer.Argument(help="the store's directory")],
    workload: Annotated[
        Path | None,
        typer.Option(help="statements with frequencies, or a CSV of pg_stat_statements"),
    ] = None,
    budget: Annotated[str | None, typer.Option(help="what the views may take, such as 2GB")] = None,
    root: Annotated[
        list[str] | None, typer.Option(help="a root table; repeatable; chosen when not given")
    ] = None,
    form: Annotated[
        ReportForm, typer.Option("--format", help="how the report is written")
    ] = ReportForm.TEXT,
    output: Annotated[Path | None, typer.Option(help="write the report to this file")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="create the views")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="with --apply: only say what would be done")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="also every stage, and every candidate")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="exit with 1 when a statement is skipped")
    ] = False,
    review: Annotated[
        bool, typer.Option("--review", help="what the views that exist have saved and cost")
    ] = False,
    watch: Annotated[
        float | None,
        typer.Option(help="look again after so many seconds, and print what is new", min=0.1),
    ] = None,
) -> None:
    try:
        options = AdviceOptions(
            None if workload is None else _read_file(workload),
            None if budget is None else parse_size(budget),
            tuple(root or ()),
            form.value,
            explain,
        )
        with _open_store(url) as store:
            if review:
                print(store.ask("review", {})["report"])
                return
            if watch is not None:
                _watch_store(store, options, watch, apply=apply and not dry_run)
                return
            skipped = _advise_store(store, options, output, apply=apply, dry_run=dry_run)
    except KeyboardInterrupt:
        return
    except (Error, DoorError, OSError) as error:
        print(f"belvedere: {error}", file=sys.stderr)
        raise typer.Exit(1) from error
    if skipped and strict:
        raise typer.Exit(1)


def _read_file(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            "workload file is not UTF-8", sqlstate="22021", file=str(path)
        ) from error


def parse_size(text: str) -> int:
    """Bytes, from texts such as 500MB, 2 GB or 1.5gb."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?b?)\s*", text, re.IGNORECASE)
    unit = None if found is None else found.group(2).lower()
    unit = unit + "b" if unit and not unit.endswith("b") else unit
    if found is None or unit is None or (unit != "b" and unit not in _UNITS):
        raise InvalidInput(
            "invalid size", sqlstate="22023", text=text, hint="write it like 500MB or 2GB"
        )
    return round(float(found.group(1)) * _UNITS.get(unit, 1))


class _AdvisedStore:
    """A store that is advised here, or in the process that has it open."""

    def __init__(self, url: str, session: Session | RemoteSession) -> None:
        self._url = url
        self.session = session

    def ask(self, verb: str, arguments: dict[str, Any]) -> dict[str, Any]:
        if not isinstance(self.session, Session):
            answer: dict[str, Any] = ask_owner_once(Path(self._url), Request(verb, arguments))
            return answer
        if verb == "review":
            return give_review(self.session.shared)
        given = {**arguments, "roots": tuple(arguments["roots"])}
        return give_advice(self.session.shared, AdviceOptions(**given))


@contextmanager
def _open_store(url: str) -> Iterator[_AdvisedStore]:
    opening = stores.OpenOptions(durability=None, autocommit=True, create=False)
    session, release = stores.open_session(url, opening)
    try:
        yield _AdvisedStore(url, session)
    finally:
        session.close()
        release()


def _advise_store(
    store: _AdvisedStore,
    options: AdviceOptions,
    output: Path | None,
    *,
    apply: bool,
    dry_run: bool,
) -> int:
    """Advise, print, apply; returns how many statements were skipped."""
    answer = store.ask("advise", _to_arguments(options))
    _print_report(answer["report"], output)
    if apply:
        _apply_advice(store.session, answer, options, dry_run=dry_run)
    return int(answer["skipped"])


def _watch_store(
    store: _AdvisedStore, options: AdviceOptions, seconds: float, *, apply: bool
) -> None:
    """Look at the statements again and again, and print the views that were not proposed before.
    They are created only when that was asked for."""
    proposed = set[str]()
    while True:
        answer = store.ask("advise", _to_arguments(options))
        new = [ddl for ddl in answer["views"] if ddl not in proposed]
        proposed.update(new)
        for statement in new:
            print(statement, flush=True)
            if apply:
                store.session.execute(statement)
                print("done", flush=True)
        time.sleep(seconds)


def _to_arguments(options: AdviceOptions) -> dict[str, Any]:
    given = {**asdict(options), "roots": list(options.roots)}
    return {name: value for name, value in given.items() if value not in (None, False)}


def _print_report(report: str, output: Path | None) -> None:
    if output is None:
        print(report)
        return
    output.write_text(report, encoding="utf-8")
    print(f"report: {output}", file=sys.stderr)


def _apply_advice(
    session: Any, answer: dict[str, Any], options: AdviceOptions, *, dry_run: bool
) -> None:
    statements = [*(answer["locks"] if options.roots else ()), *answer["views"]]
    if not statements:
        print("nothing to apply", file=sys.stderr)
    for statement in statements:
        if not dry_run:
            session.execute(statement)
        print(f"{'would run' if dry_run else 'done'}: {statement}", file=sys.stderr)
