"""A text of several statements, run one after the other: the simple protocol's.

They are one transaction, unless the text itself says otherwise: an error undoes all of them since
the last COMMIT in the text, and BEGIN makes the transaction outlast the text.
"""

from __future__ import annotations

from collections.abc import Iterator

from belvedere.errors import Error
from belvedere.session.context.result import Result
from belvedere.session.session import Session
from belvedere.session.statement import cached_plans, fast_path, literal_plans


def run_simple_query(session: Session, text: str) -> Iterator[Result]:
    """The result of each statement of the text, as it is run; none of an empty text."""
    if cached_plans.find_plan(session, text, ()) is not None:
        yield session.execute(text)
        return
    result = literal_plans.try_run_by_shape(session, text)
    if result is not None:
        yield result
        return
    found = session.parse_or_mark_failed(text)
    if len(found) == 1:
        yield session.execute(text)
    elif found:
        parts = [(one.start, text[one.start : one.end]) for one in found]
        yield from _run_in_one_transaction(session, parts)


def try_run_simple_point_read(session: Session, text: str) -> Result | None:
    """Run a text that waits for nothing; None: it is another one."""
    entry = cached_plans.find_plan(session, text, ())
    if entry is not None:
        usable = entry.tier is session.settings.tier
        return fast_path.try_run_point_read(session, entry, ()) if usable else None
    found = literal_plans.find_plan_by_shape(session, text)
    return None if found is None else fast_path.try_run_point_read(session, found[1], found[2])


def _run_in_one_transaction(session: Session, parts: list[tuple[int, str]]) -> Iterator[Result]:
    before, session.autocommit = session.autocommit, False
    state = session.transactions
    try:
        for start, part in parts:
            try:
                result = session.execute(part)
            except Error as error:
                if error.position is not None:
                    error.position += start
                raise
            yield result
        if state.open is not None and not state.explicit:
            state.commit()
    except BaseException:
        if state.open is not None and not state.explicit:
            state.rollback()
        raise
    finally:
        session.autocommit = before
