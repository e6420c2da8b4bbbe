"""Belvedere for SQLAlchemy: materialized views as constructs of a MetaData.

    engine = sqlalchemy.create_engine("belvedere:///shop.db")

needs no import from here; the dialect is found by its name.
"""

from __future__ import annotations

from belvedere.interfaces.sqlalchemy.dialect import BelvedereDialect
from belvedere.interfaces.sqlalchemy.materialized_views import (
    AlterMaterialized,
    CreateMaterialized,
    DropMaterialized,
    MaterializedView,
    RefreshMaterialized,
)

__all__ = [
    "AlterMaterialized",
    "BelvedereDialect",
    "CreateMaterialized",
    "DropMaterialized",
    "MaterializedView",
    "RefreshMaterialized",
]
