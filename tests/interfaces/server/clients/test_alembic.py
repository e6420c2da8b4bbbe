"""Alembic: a migration that autogenerate wrote, upgraded, changed, downgraded."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

ENVIRONMENT = """
from alembic import context
metadata = context.config.attributes["metadata"]
with context.config.attributes["engine"].connect() as connection:
    context.configure(connection=connection, target_metadata=metadata, compare_server_default=True)
    with context.begin_transaction():
        context.run_migrations()
"""
TEMPLATE = '''"""${message}"""
revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
from alembic import op
import sqlalchemy as sa

def upgrade():
    ${upgrades}

def downgrade():
    ${downgrades}
'''


def describe_first() -> sa.MetaData:
    metadata = sa.MetaData()
    sa.Table(
        "customers",
        metadata,
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("name", sa.String(40), nullable=False, index=True),
        sa.Column("email", sa.Text, unique=True),
    )
    return metadata


def describe_second() -> sa.MetaData:
    metadata = describe_first()
    metadata.tables["customers"].append_column(
        sa.Column("active", sa.Boolean, server_default=sa.true(), nullable=False)
    )
    sa.Table(
        "orders",
        metadata,
        sa.Column("id", sa.BigInteger, sa.Identity(), primary_key=True),
        sa.Column("customer", sa.ForeignKey("customers.id", name="of"), nullable=False),
        sa.Column("total", sa.Numeric(10, 2), server_default="0"),
        sa.CheckConstraint("total >= 0", name="not_negative"),
        sa.Index("orders_by_total", "customer", sa.text("total DESC")),
    )
    return metadata


@pytest.fixture(params=["wire", "embedded"])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Config]:
    """At both doors: SQLAlchemy's own dialect over the wire, and Belvedere's without a server."""
    if request.param == "wire":
        uri = request.getfixturevalue("uri").replace("postgresql:", "postgresql+psycopg:")
    else:
        uri = f"belvedere:///{tmp_path}/embedded.db?durability=off"
    scripts = tmp_path / "migrations"
    (scripts / "versions").mkdir(parents=True)
    (scripts / "env.py").write_text(ENVIRONMENT)
    (scripts / "script.py.mako").write_text(TEMPLATE)
    made = Config()
    made.set_main_option("script_location", str(scripts))
    made.set_main_option("path_separator", "os")
    engine = sa.create_engine(uri)
    made.attributes["engine"] = engine
    yield made
    engine.dispose()


def find_differences(config: Config, metadata: sa.MetaData) -> list[object]:
    with config.attributes["engine"].connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_server_default": True})
        return list(compare_metadata(context, metadata))


def test_generated_migrations_go_up_and_down(config: Config) -> None:
    for number, describe in enumerate((describe_first, describe_second)):
        config.attributes["metadata"] = describe()
        command.revision(config, f"step {number}", autogenerate=True, rev_id=str(number))
        command.upgrade(config, "head")
        assert find_differences(config, describe()) == []
    engine = config.attributes["engine"]
    with engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO customers VALUES (1, 'Ann', 'a@x')"))
        connection.execute(sa.text("INSERT INTO orders (customer, total) VALUES (1, 5)"))
        with pytest.raises(sa.exc.IntegrityError), connection.begin_nested():
            connection.execute(sa.text("INSERT INTO orders (customer, total) VALUES (1, -5)"))
    command.downgrade(config, "-1")
    assert find_differences(config, describe_first()) == []
    with engine.connect() as connection:
        assert connection.execute(sa.text("SELECT name FROM customers")).all() == [("Ann",)]
    command.downgrade(config, "base")
    assert sa.inspect(engine).get_table_names() == ["alembic_version"]
