"""SQLAlchemy's own PostgreSQL dialect, unmodified: reflection, DDL, an ORM session."""

from __future__ import annotations

import getpass
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

from tests.interfaces.server.conftest import PORT, Connect
from tests.interfaces.server.postgres_peer import create_database, create_schema
from tests.oracle.postgres import Postgres

TABLES = ("customers", "orders", "plain", "numbered", "Odd Name")


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(30), index=True)
    joined: Mapped[Any] = mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    posts: Mapped[list[Post]] = relationship(back_populates="user", cascade="all, delete-orphan")


class Post(Base):
    __tablename__ = "posts"
    __table_args__ = (
        sa.UniqueConstraint("user_id", "title"),
        sa.CheckConstraint("score >= 0", name="score_is_positive"),
    )
    id: Mapped[int] = mapped_column(sa.Identity(), primary_key=True)
    user_id: Mapped[int] = mapped_column(sa.ForeignKey("users.id", ondelete="CASCADE"))
    title: Mapped[str]
    score: Mapped[Any] = mapped_column(sa.Numeric(8, 2), default=0)
    user: Mapped[User] = relationship(back_populates="posts")


@pytest.fixture
def engine(server: Path) -> Iterator[sa.Engine]:
    made = sa.create_engine(
        f"postgresql+psycopg://{getpass.getuser()}@/shop?host={server}&port={PORT}"
    )
    yield made
    made.dispose()


@pytest.fixture(scope="module")
def peer(postgres: Postgres) -> Iterator[sa.Engine]:
    """An engine on PostgreSQL, with the same schema."""
    target = create_database(postgres)
    made = sa.create_engine("postgresql+psycopg://", creator=lambda: psycopg.connect(target))
    yield made
    made.dispose()


def _without_addresses(value: Any) -> Any:
    """Reflected values in a form that compares: types by their text; a sequence's cache is ours."""
    if isinstance(value, dict):
        return {key: _without_addresses(one) for key, one in value.items() if key != "cache"}
    if isinstance(value, list | tuple):
        return [_without_addresses(one) for one in value]
    return repr(value) if isinstance(value, sa.types.TypeEngine) else value


REFLECTED: dict[str, Callable[[sa.Inspector, str], Any]] = {
    "columns": lambda inspector, table: inspector.get_columns(table),
    "primary key": lambda inspector, table: inspector.get_pk_constraint(table),
    "foreign keys": lambda inspector, table: inspector.get_foreign_keys(table),
    "indexes": lambda inspector, table: inspector.get_indexes(table),
    "unique": lambda inspector, table: inspector.get_unique_constraints(table),
    "checks": lambda inspector, table: inspector.get_check_constraints(table),
    "comment": lambda inspector, table: inspector.get_table_comment(table),
    "options": lambda inspector, table: inspector.get_table_options(table),
}


def test_reflection_equals_postgres(connect: Connect, engine: sa.Engine, peer: sa.Engine) -> None:
    create_schema(connect().execute)
    here, there = sa.inspect(engine), sa.inspect(peer)
    for table in TABLES:
        for what, reflect in REFLECTED.items():
            found, expected = reflect(here, table), reflect(there, table)
            assert _without_addresses(found) == _without_addresses(expected), (table, what)
    assert sorted(here.get_table_names()) == sorted(there.get_table_names())
    assert here.get_view_names() == there.get_view_names()
    assert here.get_materialized_view_names() == there.get_materialized_view_names()
    assert sorted(here.get_sequence_names()) == sorted(there.get_sequence_names())
    assert here.get_enums() == there.get_enums() == []
    assert here.get_domains() == there.get_domains() == []
    assert here.get_pk_constraint("things", schema="other")["constrained_columns"] == ["k"]
    assert here.has_table("orders")
    assert not here.has_table("nothing")
    assert here.has_index("orders", "sevens")


def test_whole_schema_is_reflected(connect: Connect, engine: sa.Engine, peer: sa.Engine) -> None:
    create_schema(connect().execute)
    found, expected = sa.MetaData(), sa.MetaData()
    found.reflect(engine, views=True)
    expected.reflect(peer, views=True)
    assert sorted(found.tables) == sorted(expected.tables)
    for name, table in expected.tables.items():
        assert repr(found.tables[name].columns.keys()) == repr(table.columns.keys())
        keys = {(one.parent.name, one.target_fullname) for one in table.foreign_keys}
        assert {(o.parent.name, o.target_fullname) for o in found.tables[name].foreign_keys} == keys


def test_tables_are_created_and_dropped(engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)  # finds them
    assert sorted(sa.inspect(engine).get_table_names()) == ["posts", "users"]
    Base.metadata.drop_all(engine)
    assert sa.inspect(engine).get_table_names() == []


def test_orm_session_round_trip(engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add(User(name="Ann", posts=[Post(title="a", score=3), Post(title="b")]))
        session.add_all([User(name=f"user {number}") for number in range(50)])
        session.commit()
    with Session(engine) as session:
        ann = session.scalars(sa.select(User).where(User.name == "Ann")).one()
        assert ann.joined is not None
        ann.posts[0].title = "z"
        session.commit()
        with session.begin_nested():
            session.add(Post(user=ann, title="nested"))
        session.commit()
        sums = sa.select(User.name, sa.func.sum(Post.score)).join(Post).group_by(User.name)
        assert session.execute(sums).all() == [("Ann", Decimal("3.00"))]
        assert {post.title for post in ann.posts} == {"z", "b", "nested"}
        session.delete(ann)
        session.commit()
        assert session.scalar(sa.select(sa.func.count()).select_from(Post)) == 0


def test_integrity_errors_are_told_apart(engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add(Post(user_id=1, title="no such user"))
        with pytest.raises(sa.exc.IntegrityError):
            session.commit()


def test_upsert_of_a_reflected_table(connect: Connect, engine: sa.Engine) -> None:
    connect().execute("create table items (id integer primary key, name text)")
    items = sa.Table("items", sa.MetaData(), autoload_with=engine)
    values = insert(items).values(id=1, name="x")
    upsert = values.on_conflict_do_update(index_elements=["id"], set_={"name": "y"})
    with engine.begin() as connection:
        assert connection.execute(upsert.returning(items.c.name)).all() == [("x",)]
        assert connection.execute(upsert.returning(items.c.name)).all() == [("y",)]
