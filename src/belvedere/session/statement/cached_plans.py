"""Which plan of the cache serves a text: one for the types that the statement determines, and more
for parameters of other types. Constants are read in the session's time zone, so plans are kept by
it too."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from belvedere.session.statement.compiled_statement import CompiledStatement
from belvedere.session.statement.python_types import Signature, infer_signature

if TYPE_CHECKING:
    from belvedere.session.session import Session


def find_plan_for_types(
    session: Session, text: str, parameters: Sequence[Any]
) -> CompiledStatement | None:
    """The plan for the types that these parameters have by themselves."""
    key = (session.settings.zone, text, infer_signature(parameters))
    found: CompiledStatement | None = session.shared.plans.get(key)
    return found


def find_plan(session: Session, text: str, signature: Signature) -> CompiledStatement | None:
    """The plan for a text and the types of its parameters; none: those that it determines."""
    found: CompiledStatement | None = session.shared.plans.get(_plan_key(session, text, signature))
    return found


def _plan_key(session: Session, text: str, signature: Signature) -> Any:
    zone = session.settings.zone
    if signature:
        return (zone, text, signature)
    return text if zone is datetime.UTC else (zone, text)


def keep_plan(session: Session, text: str, signature: Signature, entry: CompiledStatement) -> None:
    """`signature` is empty for the plan that the statement itself determines."""
    session.shared.plans.put(_plan_key(session, text, signature), entry)
    entry.text = text
