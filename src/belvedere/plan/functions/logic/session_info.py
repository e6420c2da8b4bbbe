"""Session information functions: current user, database, schema and version."""

from __future__ import annotations

from belvedere.plan.functions.core.function import Environment, Function, stable

VERSION = "PostgreSQL 16.0 (Belvedere)"


def user(environment: Environment) -> str:
    return environment.user


def session_user(environment: Environment) -> str:
    return environment.session_user


def database(environment: Environment) -> str:
    return environment.database


def schema(environment: Environment) -> str:
    return environment.schema


def version(environment: Environment) -> str:
    return VERSION


FUNCTIONS: tuple[Function, ...] = (
    stable("current_user() text", user, environment=True),
    stable("session_user() text", session_user, environment=True),
    stable("current_database() text", database, environment=True),
    stable("current_schema() text", schema, environment=True),
    stable("version() text", version, environment=True),
)
