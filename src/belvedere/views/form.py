"""The forms a view can be kept in, as WITH (..) asks for them.

placement = 'local'      entries beside the partition of the base table, combined on read
join = 'colocated'       rows of the joined tables side by side under the join key, joined on
                         read
strict = false           what cannot be maintained by its changes is computed again as a whole
index                    of what CREATE INDEX makes: rows in the order of the columns, whatever they
                         come from
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from belvedere.errors import InvalidInput

INDEX = "index"
"""The option of a view that is an index: which columns of what it is over it has, in its order."""

FORM = ("placement", "join", "strict")
_CHOICES = {
    "placement": ("remote", "local"),
    "join": ("materialized", "colocated"),
    "strict": ("true", "false"),
}
_TRUTH = {"on": "true", "off": "false", "1": "true", "0": "false", "yes": "true", "no": "false"}


class Form(NamedTuple):
    local: bool = False
    colocated: bool = False
    strict: bool = True
    is_index: bool = False


REMOTE = Form()


def form_of(options: Mapping[str, str]) -> Form:
    """The form that options ask for; 22023 for a value that is none."""
    chosen = {name: _choice(name, options[name]) for name in FORM if name in options}
    form = Form(
        chosen.get("placement") == "local",
        chosen.get("join") == "colocated",
        chosen.get("strict", "true") == "true",
        INDEX in options,
    )
    if form.local and form.colocated:
        raise InvalidInput(
            "a co-located join cannot be local",
            sqlstate="22023",
            detail="its tables are partitioned by different keys",
        )
    return form


def _choice(name: str, value: str) -> str:
    given = value.lower()
    if name == "strict":
        given = _TRUTH.get(given, given)
    if given not in _CHOICES[name]:
        raise InvalidInput(
            f"invalid {name}",
            sqlstate="22023",
            hint="use " + " or ".join(f"'{one}'" for one in _CHOICES[name]),
            found=value,
        )
    return given
