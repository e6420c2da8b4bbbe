"""The verb by which another process asks for advice: it is computed where the store is open."""

from __future__ import annotations

from belvedere.interfaces.advice import AdviceOptions, give_advice, give_review
from belvedere.interfaces.verbs.peer import Arguments, Peer, Verb


def advise_store(peer: Peer, arguments: Arguments) -> object:
    options = AdviceOptions(
        arguments.optional_text("workload"),
        arguments.optional_number("budget_bytes"),
        tuple(arguments.get_texts("roots") or ()),
        arguments.get_text("form"),
        explain=arguments.has("explain"),
    )
    return give_advice(peer.session.shared, options)


def review_store(peer: Peer, arguments: Arguments) -> object:
    return give_review(peer.session.shared)


VERBS: dict[str, Verb] = {"advise": advise_store, "review": review_store}
