"""What dbt has built for a test: its store, and the rows of its relations."""

from __future__ import annotations

from tests.support.stores import LocalStore


def store_of(project) -> LocalStore:
    return LocalStore(f"{project.project_root}/warehouse/{project.test_schema}")


def rows(project, text: str) -> list[tuple]:
    return project.run_sql(text.replace("{s}", project.test_schema), fetch="all")
