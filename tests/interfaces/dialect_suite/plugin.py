"""What a run of SQLAlchemy's dialect suite needs before its own plugin starts."""

from __future__ import annotations

import pytest

pytest.register_assert_rewrite("sqlalchemy.testing.assertions")

from sqlalchemy.dialects import registry  # noqa: E402
from sqlalchemy.dialects.postgresql import provision as _  # noqa: E402, F401
from sqlalchemy.testing import provision  # noqa: E402
from sqlalchemy.testing.plugin.pytestplugin import *  # noqa: E402, F403


def _add_nothing(url: object, engine: object, follower_ident: object) -> None:
    """Extensions of PostgreSQL, which SQLAlchemy's own tests need and the suite does not."""


provision.post_configure_engine.for_db("postgresql")(_add_nothing)
for _hook in vars(provision).values():
    if isinstance(_hook, provision.register) and "postgresql" in _hook.fns:
        _hook.fns["belvedere"] = _hook.fns["postgresql"]

# The suite writes a URL with its driver: belvedere+belvedere.
registry.register(
    "belvedere.belvedere", "belvedere.interfaces.sqlalchemy.dialect", "BelvedereDialect"
)
