from tests.oracle.postgres import postgres  # noqa: F401
from tests.protocols import commit_protocol, pytest_generate_tests  # noqa: F401
