from tests.oracle.postgres import postgres  # noqa: F401
