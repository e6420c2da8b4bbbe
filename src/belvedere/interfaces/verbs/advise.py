"""The verb by which another process asks for advice: it is computed where the store is open."""

from __future__ import annotations

from belvedere.interfaces.advice import AdviceOptions, give_advice
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


VERBS: dict[str, Verb] = {"advise": advise_store}
