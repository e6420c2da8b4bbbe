"""Views that leave their maintenance group for a while, and come back: a detached view has a
watermark of its own."""

from __future__ import annotations

from belvedere.catalog.model import View
from belvedere.kv.batch import Write
from belvedere.txn.contracts import CommitProtocol, Reader
from belvedere.views.state import claims
from belvedere.views.state.watermarks import (
    build_next_epoch_write,
    build_watermark_write,
    read_watermark,
)


def detach_view_from_group(commits: CommitProtocol, view: View) -> None:
    """Detach a view from its group, at the group's present watermark."""

    def build_detach_writes(reader: Reader) -> list[Write]:
        at = read_watermark(reader, view.group)
        if at is None or read_watermark(reader, view.id) is not None:
            return []
        # A batch of the group that was computed with the view becomes void.
        return [build_watermark_write(view.id, at), build_next_epoch_write(reader)]

    commits.derive(build_detach_writes)


def rejoin_view_to_group(commits: CommitProtocol, view: View) -> None:
    """Let a detached view share its group's watermark again, if the two are equal."""

    def build_rejoin_writes(reader: Reader) -> list[Write]:
        own, now = read_watermark(reader, view.id), reader.catalog.get(view.id)
        if own is None or now != view or read_watermark(reader, view.group) != own:
            return []
        if claims.read_current_claim(reader, view.group) is not None:
            return []
        return [build_watermark_write(view.id, None)]

    commits.derive(build_rejoin_writes)
