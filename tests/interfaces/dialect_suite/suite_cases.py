"""SQLAlchemy's dialect suite: every class of it, collected by a pytest of its own."""

from sqlalchemy.testing.suite import *  # noqa: F403
