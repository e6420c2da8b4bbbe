"""Views are tested on both commit protocols."""

from tests.protocols import commit_protocol, pytest_generate_tests  # noqa: F401
