"""Which plan of the cache serves a text: one for the types that the statement determines, and more
for parameters of other types. Constants are read in the session's time zone, names are looked up in
its search path, plans differ with the setting `rewrite`, and rights are checked when a plan is
made, so plans are kept by all four; those of the owner under the usual settings by the text alone.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from belvedere.catalog.model import OWNER_ROLE
from belvedere.session.statement.compiled_statement import CompiledStatement
from belvedere.session.statement.python_types import Signature, infer_parameter_types

if TYPE_CHECKING:
    from belvedere.session.session import Session


Variant = tuple[datetime.tzinfo, bool, int, tuple[str, ...]]
"""What a plan is made for: the time zone, whether views may answer queries, the role whose rights
were checked, and where names are looked up."""


def get_plan_variant(session: Session) -> Variant:
    settings = session.settings
    return settings.zone, settings.rewrite, session.identity.role, settings.get("search_path")


def make_plan_finder(session: Session) -> Callable[[str], Any]:
    """The function that finds a plan for the session's settings, by the text alone for the usual
    ones. Where other processes commit too, one that wants the latest looks for it first."""
    get, variant = session.shared.plans.get, get_plan_variant(session)
    find: Callable[[str], Any] = get
    if not _is_usual_variant(variant):
        find = lambda text: get((variant, text))  # noqa: E731
    if not session.host.row_atomic or not session.settings.get("freshness").wants_newest:
        return find
    return lambda text: (session.transactions.raise_floor_to_latest(), find(text))[1]


_USUAL_PATH = ("$user", "public")


def _is_usual_variant(variant: Variant) -> bool:
    zone, rewrite, role, path = variant
    return zone is datetime.UTC and rewrite and role == OWNER_ROLE and path == _USUAL_PATH


def find_plan_for_types(
    session: Session, text: str, parameters: Sequence[Any]
) -> CompiledStatement | None:
    """The plan for the types that these parameters have by themselves."""
    key = (get_plan_variant(session), text, infer_parameter_types(parameters))
    found: CompiledStatement | None = session.shared.plans.get(key)
    return found


def find_plan(session: Session, text: str, signature: Signature) -> CompiledStatement | None:
    """The plan for a text and the types of its parameters; none: those that it determines."""
    found: CompiledStatement | None = session.shared.plans.get(
        _make_plan_key(session, text, signature)
    )
    return found


def _make_plan_key(session: Session, text: str, signature: Signature) -> Any:
    variant = get_plan_variant(session)
    if signature:
        return (variant, text, signature)
    return text if _is_usual_variant(variant) else (variant, text)


def keep_plan(session: Session, text: str, signature: Signature, entry: CompiledStatement) -> None:
    """`signature` is empty for the plan that the statement itself determines."""
    session.shared.plans.put(_make_plan_key(session, text, signature), entry)
    entry.text = text
