"""SQLAlchemy's dialect of an embedded store: URLs, values, transactions, reflection."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path

import pytest
import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship

import belvedere


class Base(DeclarativeBase):
    pass


class User(Base):
    __tablename__ = "users"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str] = mapped_column(sa.String(30), index=True)
    posts: Mapped[list[Post]] = relationship(back_populates="user", cascade="all, delete-orphan")


class Post(Base):
    __tablename__ = "posts"
    __table_args__ = (sa.CheckConstraint("score >= 0", name="score_is_positive"),)
    id: Mapped[int] = mapped_column(sa.Identity(), primary_key=True)
    user_id: Mapped[int] = mapped_column(sa.ForeignKey("users.id", ondelete="CASCADE"))
    title: Mapped[str]
    score: Mapped[Decimal] = mapped_column(sa.Numeric(8, 2), default=0)
    user: Mapped[User] = relationship(back_populates="posts")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sa.Engine]:
    made = sa.create_engine(f"belvedere:///{tmp_path}/shop.db?durability=off")
    yield made
    made.dispose()


def test_session_round_trip(engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    Base.metadata.create_all(engine)  # finds them
    with Session(engine) as session:
        session.add(User(name="Ann", posts=[Post(title="a", score=3), Post(title="b")]))
        session.commit()
        with session.begin_nested():
            session.add(Post(user_id=1, title="nested"))
        session.commit()
        sums = sa.select(User.name, sa.func.sum(Post.score)).join(Post).group_by(User.name)
        assert session.execute(sums).all() == [("Ann", Decimal("3.00"))]
        session.add(Post(user_id=7, title="no such user"))
        with pytest.raises(sa.exc.IntegrityError) as caught:
            session.commit()
        assert caught.value.orig is not None
        assert caught.value.orig.sqlstate == "23503"  # type: ignore[attr-defined]
    Base.metadata.drop_all(engine)
    assert sa.inspect(engine).get_table_names() == []


def test_reflection_reads_the_system_catalogs(engine: sa.Engine) -> None:
    Base.metadata.create_all(engine)
    inspector = sa.inspect(engine)
    assert sorted(inspector.get_table_names()) == ["posts", "users"]
    (key,) = inspector.get_foreign_keys("posts")
    assert (key["referred_table"], key["options"]) == ("users", {"ondelete": "CASCADE"})
    assert [one["name"] for one in inspector.get_check_constraints("posts")] == [
        "score_is_positive"
    ]
    assert [one["name"] for one in inspector.get_indexes("users")] == ["ix_users_name"]
    posts = sa.Table("posts", sa.MetaData(), autoload_with=engine)
    assert isinstance(posts.c.score.type, sa.Numeric)
    assert posts.c.id.identity is not None


VALUES = {
    sa.Integer: -7,
    sa.BigInteger: 1 << 40,
    sa.SmallInteger: 3,
    sa.Boolean: True,
    sa.String: "it's",
    sa.Text: "ü",
    sa.Date: datetime.date(2026, 1, 2),
    sa.Time: datetime.time(1, 2, 3, 4),
    sa.DateTime: datetime.datetime(2026, 1, 2, 3, 4, 5, 6),
    sa.Interval: datetime.timedelta(days=1, seconds=2),
    sa.LargeBinary: b"\0\xff",
    sa.JSON: {"a": [1, None, "x"]},
    sa.Uuid: uuid.UUID(int=5),
    sa.Float: 1.5,
    sa.Numeric: Decimal("1.25"),
}


@pytest.mark.parametrize("kind", VALUES, ids=lambda kind: kind.__name__)
def test_value_and_null_go_in_and_come_back(engine: sa.Engine, kind: type) -> None:
    made = sa.JSON(none_as_null=True) if kind is sa.JSON else kind()
    things = sa.Table(
        "things", sa.MetaData(), sa.Column("id", sa.Integer), sa.Column("value", made)
    )
    things.create(engine)
    with engine.begin() as connection:
        connection.execute(things.insert(), [{"id": 1, "value": VALUES[kind]}])
        connection.execute(things.insert(), [{"id": 2, "value": None}])
        connection.execute(things.insert().values(id=3, value=VALUES[kind]))
        found = connection.execute(sa.select(things.c.value).order_by(things.c.id))
        assert found.scalars().all() == [VALUES[kind], None, VALUES[kind]]
        if kind is not sa.JSON:
            equal = sa.select(sa.func.count()).where(things.c.value == VALUES[kind])
            assert connection.scalar(equal) == 2


def test_numbers_are_what_the_program_says(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        as_float = sa.type_coerce(sa.text("1.25::numeric"), sa.Numeric(asdecimal=False))
        as_decimal = sa.type_coerce(sa.text("1.25::float8"), sa.Float(asdecimal=True))
        assert repr(connection.scalar(sa.select(as_float))) == "1.25"
        assert connection.scalar(sa.select(as_decimal)) == Decimal("1.25")


def test_enum_is_text(engine: sa.Engine) -> None:
    metadata = sa.MetaData()
    kinds = sa.Enum("red", "blue", name="colours", create_constraint=True)
    cars = sa.Table("cars", metadata, sa.Column("colour", kinds))
    metadata.create_all(engine)
    with engine.connect() as connection:
        connection.execute(cars.insert().values(colour="red"))
        connection.commit()
        with pytest.raises(sa.exc.IntegrityError):
            connection.exec_driver_sql("INSERT INTO cars VALUES ('gray')")


def test_memory_is_shared_by_the_connections_of_an_engine() -> None:
    first = sa.create_engine("belvedere:///:memory:")
    second = sa.create_engine("belvedere://")
    with first.connect() as one, first.connect() as other:
        one.exec_driver_sql("CREATE TABLE t (a int)")
        one.commit()
        assert other.exec_driver_sql("SELECT count(*) FROM t").scalar() == 0
        assert sa.inspect(second).get_table_names() == []
    first.dispose()
    second.dispose()


def test_isolation_and_autocommit(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        assert connection.get_isolation_level() == "READ COMMITTED"
        connection = connection.execution_options(isolation_level="SERIALIZABLE")
        assert connection.get_isolation_level() == "SERIALIZABLE"
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.exec_driver_sql("CREATE TABLE t (a int)")
    with engine.connect().execution_options(postgresql_readonly=True) as connection:
        with pytest.raises(sa.exc.DBAPIError, match="read-only"):
            connection.exec_driver_sql("INSERT INTO t VALUES (1)")
    with engine.connect() as connection:
        assert connection.get_isolation_level() == "READ COMMITTED"
        assert connection.exec_driver_sql("SELECT count(*) FROM t").scalar() == 0


def test_upsert(engine: sa.Engine) -> None:
    items = sa.Table(
        "items",
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("n", sa.Text),
    )
    items.create(engine)
    upsert = insert(items).values(id=1, n="x")
    upsert = upsert.on_conflict_do_update(index_elements=["id"], set_={"n": "y"})
    with engine.begin() as connection:
        assert connection.execute(upsert.returning(items.c.n)).all() == [("x",)]
        assert connection.execute(upsert.returning(items.c.n)).all() == [("y",)]


@pytest.mark.parametrize(
    "url",
    [
        "belvedere://host/shop.db",
        "belvedere://ann@/shop.db",
        "belvedere:///shop.db?nonsense=1",
        "belvedere:///shop.db?read_only=perhaps",
        "belvedere:///shop.db?durability=off&durability=full",
    ],
)
def test_wrong_url_is_refused(url: str) -> None:
    with pytest.raises(sa.exc.ArgumentError):
        sa.create_engine(url)


def test_wrong_option_value_is_told_by_the_driver(tmp_path: Path) -> None:
    engine = sa.create_engine(f"belvedere:///{tmp_path}/shop.db?durability=sometimes")
    with pytest.raises(sa.exc.DBAPIError):
        engine.connect()


def test_closed_connection_is_replaced(engine: sa.Engine) -> None:
    with engine.connect() as connection:
        driver = connection.connection.driver_connection
        assert isinstance(driver, belvedere.Connection)
        driver.close()
        with pytest.raises(sa.exc.DBAPIError) as caught:
            connection.exec_driver_sql("SELECT 1")
        assert caught.value.connection_invalidated
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
