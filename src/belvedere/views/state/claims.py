"""Claims: the right to maintain a group over a log range, fenced by an epoch.

By default a group is maintained by the worker of the process that has the store open. An external
driver (a Spark job) takes it over with a claim, which is a row of the store:

    claim = take_claim(commits, group, "spark job 7")    # epoch 4, (120, 180]
    additions = ...                                      # what (claim.start, claim.end] adds
    claim = advance_claim(commits, claim, additions)     # one visible step; epoch 4, (180, 240]
    release_claim(commits, claim)                        # the worker maintains the group again

- `take_claim` is refused while another owner holds the group, unless `force` is given: then the
  epoch grows and the former owner is refused from its next step on. An owner that takes its own
  claim again (after a restart) gets a new epoch and the part of the same log range that is not
  done.
- `advance_claim` writes the additions, the watermark and the next claim in one batch, and only when
  epoch, watermark and the group's views are still those of the claim. So every log range is
  applied exactly once, no matter which process dies at which time.
- `additions` are (key, payload, amounts) as for `Writer.add`, of the views that share the group's
  watermark at the claim's start. Detached views (`views.state.watermarks`) stay with the worker.
- `release_claim` returns the group to the worker. The epoch stays, so that an earlier claim can
  never be used again.

A claim that does not advance is taken over by the worker after a while (`views.deferred.worker`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from belvedere.catalog.catalog import Catalog
from belvedere.catalog.model import View
from belvedere.codec import keyspace
from belvedere.errors import InvalidInput, Unavailable
from belvedere.kv.batch import Write
from belvedere.txn.contracts import Reader
from belvedere.views.changefeed.entries import Addition
from belvedere.views.state.state_update import (
    ChangefeedStep,
    Commits,
    StateUpdate,
    commit_state_update,
)
from belvedere.views.state.watermarks import list_group_views, read_watermark

CLAIM_POSITIONS_MAX = 100_000


class Claim(NamedTuple):
    """The right to bring `group` from position `start` to `end`, with the views it had at
    `catalog_version`."""

    group: int
    owner: str
    epoch: int
    start: int
    end: int
    catalog_version: int


class _StoredClaim(msgspec.Struct, frozen=True, array_like=True):
    """A claim as it is stored. An empty owner: the group is free."""

    owner: str
    epoch: int
    start: int
    end: int
    catalog_version: int


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_StoredClaim).decode


def read_current_claim(reader: Reader, group: int) -> Claim | None:
    """The claim under which an external driver maintains the group; None: the worker does."""
    stored = _read_stored_claim(reader, group)
    return None if stored is None or not stored.owner else _stored_to_claim(group, stored)


def take_claim(
    commits: Commits,
    group: int,
    owner: str,
    *,
    positions_max: int = CLAIM_POSITIONS_MAX,
    force: bool = False,
) -> Claim:
    """Claim the group from its watermark to the newest written position. InvalidInput when there
    is no such group, Unavailable (55006) when another owner holds it."""
    if not owner:
        raise InvalidInput("a claim needs an owner", sqlstate="22023")
    taken: list[Claim] = []

    def build_take_writes(reader: Reader) -> list[Write]:
        stored = _read_stored_claim(reader, group)
        if stored is not None and stored.owner not in ("", owner) and not force:
            raise Unavailable(
                "maintenance group is claimed by another",
                sqlstate="55006",
                group=group,
                owner=stored.owner,
                epoch=stored.epoch,
            )
        start = read_watermark(reader, group)
        if start is None:
            raise InvalidInput("maintenance group does not exist", sqlstate="42704", group=group)
        end = min(reader.position, start + positions_max)
        if stored is not None and stored.owner and stored.start == start < stored.end:
            end = stored.end  # the same batch, so that work already done for it can be used
        epoch = 1 if stored is None else stored.epoch + 1
        taken[:] = [Claim(group, owner, epoch, start, end, reader.catalog.version)]
        return [_build_claim_write(taken[0])]

    commits.derive(build_take_writes)
    return taken[0]


def advance_claim(
    commits: Commits,
    claim: Claim,
    additions: Iterable[Addition],
    *,
    positions_max: int = CLAIM_POSITIONS_MAX,
) -> Claim:
    """Apply what (start, end] adds; returns the claim for the next log range. Unavailable (55006)
    when the claim is no longer valid; (40001) when the group has other views now: take it again."""
    listed = list(additions)
    moved: list[Claim] = []

    def build_advance_update(reader: Reader) -> StateUpdate:
        _require_valid_claim(reader, claim)
        if _has_group_changed_since_claim(reader.catalog, claim, listed):
            raise Unavailable(
                "the views of the group have changed",
                sqlstate="40001",
                hint="take the claim again",
                group=claim.group,
            )
        end = min(reader.position, claim.end + positions_max)
        version = reader.catalog.version
        moved[:] = [claim._replace(start=claim.end, end=end, catalog_version=version)]
        return StateUpdate(
            listed,
            changefeed=ChangefeedStep(list_group_views(reader.catalog, claim.group), claim.end),
            watermarks={claim.group: claim.end},
            others=[_build_claim_write(moved[0])],
        )

    commit_state_update(commits, build_advance_update)
    return moved[0]


def extend_claim(
    commits: Commits, claim: Claim, *, positions_max: int = CLAIM_POSITIONS_MAX
) -> Claim:
    """Extend the claim's log range to the newest position, when it had nothing to apply."""
    renewed: list[Claim] = []

    def build_extension_writes(reader: Reader) -> list[Write]:
        _require_valid_claim(reader, claim)
        end = min(reader.position, claim.start + positions_max)
        version = reader.catalog.version
        renewed[:] = [claim._replace(end=end, catalog_version=version)]
        return [_build_claim_write(renewed[0])]

    commits.derive(build_extension_writes)
    return renewed[0]


def release_claim(commits: Commits, claim: Claim) -> None:
    """Return the group to the worker."""

    def build_release_writes(reader: Reader) -> list[Write]:
        _require_valid_claim(reader, claim)
        return [_build_claim_write(claim._replace(owner=""))]

    commits.derive(build_release_writes)


def revoke_stalled_claim(commits: Commits, seen: Claim) -> bool:
    """Revoke the claim of an owner that seems dead; False when it has advanced since `seen`."""
    done: list[bool] = []

    def build_revocation_writes(reader: Reader) -> list[Write]:
        done[:] = [read_current_claim(reader, seen.group) == seen]
        if not done[0]:
            return []
        return [_build_claim_write(seen._replace(owner="", epoch=seen.epoch + 1))]

    commits.derive(build_revocation_writes)
    return done[0]


def _require_valid_claim(reader: Reader, claim: Claim) -> None:
    stored = _read_stored_claim(reader, claim.group)
    at = read_watermark(reader, claim.group)
    if stored is None or (stored.owner, stored.epoch) != (claim.owner, claim.epoch):
        raise Unavailable(
            "claim was taken over",
            sqlstate="55006",
            group=claim.group,
            epoch=claim.epoch,
            epoch_now=0 if stored is None else stored.epoch,
        )
    if at != claim.start:
        raise Unavailable(
            "claim is for another stretch of the log",
            sqlstate="55006",
            group=claim.group,
            watermark=at,
            start=claim.start,
        )


def _has_group_changed_since_claim(
    catalog: Catalog, claim: Claim, additions: Sequence[Addition]
) -> bool:
    """Whether a view joined the group, left it or was changed since the claim."""
    written = {int.from_bytes(key[1 : keyspace.ROW_PREFIX_BYTES]) for key, _, _ in additions}
    return any(
        item.version > claim.catalog_version
        for item in catalog.objects.values()
        if isinstance(item, View) and (item.group == claim.group or item.id in written)
    )


def _read_stored_claim(reader: Reader, group: int) -> _StoredClaim | None:
    value = reader.get(keyspace.claim_key(group))
    return None if value is None else _decode(value)


def _stored_to_claim(group: int, stored: _StoredClaim) -> Claim:
    return Claim(
        group, stored.owner, stored.epoch, stored.start, stored.end, stored.catalog_version
    )


def _build_claim_write(claim: Claim) -> Write:
    stored = _StoredClaim(claim.owner, claim.epoch, claim.start, claim.end, claim.catalog_version)
    return keyspace.claim_key(claim.group), _encode(stored)
