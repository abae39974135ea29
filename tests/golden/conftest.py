"""dbt's own harness, for the records of models."""

from tests.functional.conftest import *  # noqa: F403 - the harness's fixtures
