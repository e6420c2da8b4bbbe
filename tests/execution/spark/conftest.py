from tests.spark_session import spark  # noqa: F401
